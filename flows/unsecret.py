"""Settings are kept: in run.json, in the store, and by Prefect as parameters. What is secret is refused before that."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from flows.oracle_specs import secret_in
from sources.secrets import has_password, secret_of

NOT_REPEATED = "secret"  # the type of an error whose input is not shown


def _oracle(text: str) -> str:
    if problem := secret_in(text):
        raise PydanticCustomError(NOT_REPEATED, "{problem}", {"problem": problem})
    return text


def _store(text: str) -> str:
    if has_password(text) or "password=" in text.lower():
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
