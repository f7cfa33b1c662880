"""Where a transformers model is, a folder or an id on the hub, and which version of it."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from twothirds.models.oracle import OracleUnavailable, ServerAway

NEEDS_CODE = (
    "model {!r} comes with code of its own, which is never run: choose a model that transformers has a class for"
)
HUB_SECONDS = 10.0  # to learn whether the hub can be reached


@dataclass(frozen=True, slots=True)
class ModelFiles:
    name: str  # for people: a folder's name or a hub id
    location: str  # what from_pretrained takes
    revision: str | None  # a hub commit; None for a folder
    version: str  # another one when the weights, the tokenizer or any other file differs


def find_model(model: str, revision: str | None = None) -> ModelFiles:
    """Raises OracleUnavailable. A copy in the hub's cache is used before the hub is asked."""
    folder = Path(os.path.expanduser(model))  # that of an unknown user stays as it is
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise OracleUnavailable(f"{model!r} holds no model (no config.json): give a folder made by save_pretrained")
        _refuse_code(folder)
        return ModelFiles(folder.resolve().name, str(folder), None, _content_digest(folder))
    if model.startswith((".", "/", "~")) or model.count("/") > 1 or "\\" in model:
        raise OracleUnavailable(f"there is no folder {model!r}: give the path of a saved model, or a hub id")
    commit = _hub_commit(model, revision)
    return ModelFiles(model, model, commit, commit)


def pretrained(loader: Any, files: ModelFiles, **options: Any) -> Any:
    """What a class of transformers makes of the files; code that comes with a model is never run.

    This is the only caller of `from_pretrained`: without `trust_remote_code` transformers would ask on the terminal
    whether to run such code. Raises OracleUnavailable where a model cannot be loaded without."""
    try:
        return loader.from_pretrained(files.location, revision=files.revision, trust_remote_code=False, **options)
    except ValueError as error:
        if "trust_remote_code" in str(error):
            raise OracleUnavailable(NEEDS_CODE.format(files.name)) from None
        raise


def _refuse_code(folder: Path) -> None:
    """Raises OracleUnavailable where a configuration names code in the folder, even if it could be left unused."""
    for path in sorted(folder.glob("*config*.json")):
        try:
            config = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue  # the library says what is wrong with it
        if isinstance(config, dict) and config.get("auto_map"):
            raise OracleUnavailable(NEEDS_CODE.format(folder.resolve().name))


def _content_digest(folder: Path) -> str:
    """Of every file's name and bytes: a folder that was copied is the same model, a fine-tuned one is not."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md")
    digest = hashlib.sha256()
    for path in files:
        status = path.stat()
        digest.update(f"{path.relative_to(folder).as_posix()}\n".encode())
        digest.update(_file_digest(path, status.st_size, status.st_mtime_ns))
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1024)
def _file_digest(path: Path, _size: int, _changed: int) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _hub_commit(model: str, revision: str | None) -> str:
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, HFValidationError, RepositoryNotFoundError
    from huggingface_hub.errors import RevisionNotFoundError as NoSuchRevision

    try:
        return Path(hf_hub_download(model, "config.json", revision=revision, local_files_only=True)).parent.name
    except HFValidationError:
        raise OracleUnavailable(f"{model!r} is neither a folder nor a hub id: give a path or OWNER/NAME") from None
    except (EntryNotFoundError, OSError):
        pass  # not in the cache
    try:
        commit = HfApi().model_info(model, revision=revision, timeout=HUB_SECONDS).sha
    except GatedRepoError:
        raise OracleUnavailable(f"{model!r} is gated: accept its terms on the hub and run `hf auth login`") from None
    except (RepositoryNotFoundError, NoSuchRevision):
        wanted = model if revision is None else f"{model} at {revision}"
        raise OracleUnavailable(f"the hub has no model {wanted!r} for you: check its name and your login") from None
    except Exception as error:  # the hub's client lets errors of its HTTP library through
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise ServerAway(
            f"{model!r} is no folder, not in the hub's cache, and the hub cannot be reached ({reason}): "
            f"connect, or download it elsewhere (`hf download {model}`) and give the folder"
        ) from None
    if commit is None:
        raise OracleUnavailable(f"the hub names no commit for {model!r}: give a revision")
    return commit
