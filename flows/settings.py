"""Settings are kept: in run.json, in the store, and by Prefect as parameters. What is secret is refused before that.

The settings of a run, and the one place that reads the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import platformdirs
from pydantic import AfterValidator, SecretStr
from pydantic_core import PydanticCustomError

from flows.oracle_specs import secret_in
from flows.progress import SILENT, Display
from sources.secrets import has_store_password, secret_forms, secret_of

if TYPE_CHECKING:
    from store import Store

NOT_REPEATED = "secret"  # the type of an error whose input is not shown


def _oracle(text: str) -> str:
    if problem := secret_in(text):
        raise PydanticCustomError(NOT_REPEATED, "{problem}", {"problem": problem})
    return text


def _store(text: str) -> str:
    if has_store_password(text):
        raise PydanticCustomError(
            NOT_REPEATED, "the address holds a password, and settings are kept and logged: set TWOTHIRDS_STORE instead"
        )
    return text


def _dataset(text: str) -> str:
    if secret := secret_of(text):
        raise PydanticCustomError(
            NOT_REPEATED,
            "the address holds {secret}, and settings are kept and logged: put it into a variable and write "
            "'${NAME}' in its place",
            {"secret": secret},
        )
    return text


OracleText = Annotated[str, AfterValidator(_oracle)]
StoreText = Annotated[str, AfterValidator(_store)]
DatasetText = Annotated[str, AfterValidator(_dataset)]


APP = "twothirds"


def default_store() -> str:
    """TWOTHIRDS_STORE, for an address with a password has no place among parameters; else in the user's data folder."""
    return os.environ.get("TWOTHIRDS_STORE") or f"sqlite:///{Path(platformdirs.user_data_dir(APP)) / 'store.sqlite'}"


def open_store(url: str | None, display: Display = SILENT) -> Store:
    """The store of the settings; `display` says if it has to be brought to the newest schema first."""
    from store import Store

    return Store.open(url or default_store(), waiting=display.waiting)


def state_folder() -> Path:
    return Path(platformdirs.user_state_dir(APP))


@dataclass(frozen=True)
class Environment:
    """What the usual variables say. Secrets stay in here and in the adapters: never in settings, logs or the store."""

    cache: Path
    openai_api_key: SecretStr
    openai_base_url: str | None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no line may show."""
        of_oracle = secret_forms(self.openai_api_key.get_secret_value(), self.openai_base_url)
        return (*of_oracle, *secret_forms("", default_store()))

    @classmethod
    def read(cls) -> Environment:
        return cls(
            cache=Path(platformdirs.user_cache_dir(APP)),
            openai_api_key=SecretStr(os.environ.get("OPENAI_API_KEY", "")),
            openai_base_url=os.environ.get("OPENAI_BASE_URL") or None,
        )


def prefect_environment() -> dict[str, str]:
    """History written promptly, nothing reported to anybody; whatever the user has set wins."""
    wanted = {
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    return {name: value for name, value in wanted.items() if name not in os.environ}
