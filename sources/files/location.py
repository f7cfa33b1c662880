"""Where files are: at an absolute local path or an fsspec URL."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import stat
import threading
from collections.abc import Mapping
from typing import IO, Any, cast

from twothirds.sources.errors import DatasetError, Unreadable
from twothirds.sources.files.private_hosts import options_for_user, refusal_in
from twothirds.sources.printable import printable, quoted
from twothirds.sources.secrets import without_secrets

MAX_FILE_BYTES = 256 * 2**20  # a hostile file must not fill the memory
TOO_LARGE = f"larger than {MAX_FILE_BYTES // 2**20} MB"
BUFFER_BYTES = 4 * 2**20
_opened_by_this_thread = threading.local()  # the archive that was read last


def is_url(location: str) -> bool:
    return "://" in location


def absolute(spec: str) -> str:
    """A local path made absolute, so that a process started elsewhere finds it too; another URL as it is."""
    if spec.startswith(("file://", "local://")) and "::" not in spec:
        spec = spec.partition("://")[2]
    return spec if is_url(spec) else os.path.abspath(os.path.expanduser(spec))


def child(folder: str, relative: str) -> str:
    """The location of a file below a folder. Chained URLs (`zip://folder::file:///a.zip`) grow in their first path."""
    if not is_url(folder):
        return os.path.join(folder, relative)
    head, path, tail = _split_chain(folder)
    path, query = _split_query(path)
    return head + (path if path.endswith("/") else path + "/") + relative + query + tail


def parent(location: str) -> str:
    if not is_url(location):
        return os.path.dirname(location)
    head, path, tail = _split_chain(location)
    path, query = _split_query(path)
    protocol, _, rest = path.partition("://")
    return f"{head}{protocol}://{rest.rpartition('/')[0]}{query}{tail}"


def file_name(location: str) -> str:
    """The last part of the path; of an archive's root, the archive's own name."""
    if not is_url(location):
        return os.path.basename(location.rstrip("/"))
    _, path, tail = _split_chain(location)
    inner = path.partition("://")[2].partition("?")[0].rstrip("/")
    return inner.rpartition("/")[2] or os.path.basename(tail.removeprefix("::").rstrip("/"))


def _split_chain(url: str) -> tuple[str, str, str]:
    """Before, the part with the path of the file itself, after: `simplecache::`, `zip://a/b.csv`, `::file:///c.zip`."""
    links = url.split("::")
    at = next(i for i, link in enumerate(links) if "://" in link)
    head = "".join(link + "::" for link in links[:at])
    tail = "".join("::" + link for link in links[at + 1 :])
    return head, links[at], tail


def _split_query(path: str) -> tuple[str, str]:
    """Files beside one on a web server are fetched with the same query: its token may be valid for the whole folder."""
    if not path.startswith(("http://", "https://")):
        return path, ""
    path, mark, query = path.partition("?")
    return path, mark + query


def member_location(archive: str, start: int, size: int) -> str:
    """Of a file in an archive that is not compressed: `pets.tar#bytes[512+20480]` is read without its index."""
    return f"{archive}#bytes[{start}+{size}]"


def member_of(location: str) -> tuple[str, int, int] | None:
    """Archive, first byte and size of a member's location; None for any other location."""
    archive, _, place = location.rpartition("#")
    found = re.fullmatch(r"bytes\[(\d{1,18})\+(\d{1,9})\]", place)
    if found is None or not archive.partition("?")[0].lower().endswith(".tar"):
        return None
    return archive, int(found[1]), int(found[2])


def file_system(url: str, options: Mapping[str, Any] | None = None) -> tuple[Any, str]:
    """The fsspec file system of a URL and the path in it. Options of fsspec go by the kind of address they are for;
    without them, the URL is taken for the user's own."""
    options = options_for_user(url) if options is None else options
    head, inner, tail = _split_chain(url)
    if head or not tail:
        return _file_system(url, options)
    # fsspec would open the archive, and read its index, again for every file in it.
    archives: dict[str, Any] = vars(_opened_by_this_thread)
    key = f"{inner.partition('://')[0]}{tail} {fingerprint(absolute(tail.removeprefix('::')), options)} {options}"
    if key not in archives:
        archives.clear()
        archives[key], _ = _file_system(url, options)
    return archives[key], inner.partition("://")[2].strip("/")


def _file_system(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    import fsspec

    from twothirds.sources.files.buckets import register_buckets

    try:
        register_buckets()
        kinds = {part.partition("://")[0] for part in url.split("::")}
        fs, path = fsspec.core.url_to_fs(url, **{kind: dict(options[kind]) for kind in kinds & options.keys()})
    except ImportError as error:
        remedy = f"pip install {_missing_package(str(error))}"
        raise DatasetError(f"reading {quoted(url)} needs a package that is not installed: {remedy}") from None
    except Exception as error:  # every file system has its own exceptions for an address it cannot use
        raise Unreadable(reason_of(error)) from None
    return fs, path


def _missing_package(message: str) -> str:
    """fsspec says `Install s3fs to access S3`, or `requires "requests" and "aiohttp" to be installed`."""
    names: list[str] = re.findall(r"\"([A-Za-z]\w*)\"", message) + re.findall(r"[Ii]nstall ([A-Za-z]\w*)", message)
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return " ".join(missing) or f"what fsspec asks for ({without_secrets(' '.join(message.split()))})"


def reason_of(error: BaseException) -> str:
    """Why something failed, in a few words on one line."""
    if (refusal := refusal_in(error)) is not None:
        return str(refusal)
    if isinstance(error, FileNotFoundError):
        return "missing file"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return printable(without_secrets(" ".join(str(error).split()))[:200]) or type(error).__name__


def open_binary(location: str, options: Mapping[str, Any] | None = None) -> IO[bytes]:
    """For reading a whole table as a stream."""
    try:
        if not is_url(location):
            return open(_regular(location), "rb")
        fs, path = file_system(location, options)
        if "memory" in fs.protocol:
            return io.BytesIO(fs.cat_file(path))  # its files share one position among all readers
        stream: Any = fs.open(path, "rb")
        if "Arrow" in type(stream).__name__:  # every small read would be a request of its own
            return io.BufferedReader(stream, BUFFER_BYTES)
        with contextlib.suppress(AttributeError):
            stream.kept_open_by = fs  # an archive closes itself once nothing refers to its file system
        return cast(IO[bytes], stream)
    except (DatasetError, Unreadable):
        raise
    except Exception as error:  # as above: file systems raise any exception
        raise Unreadable(reason_of(error)) from None


def fingerprint(location: str, options: Mapping[str, Any] | None = None) -> str:
    """Differs once the file is written again, as far as its file system tells. Raises Unreadable."""
    try:
        if is_url(location):
            fs, path = file_system(location, options)
            return str(fs.ukey(path))
        status = os.stat(location)
    except (DatasetError, Unreadable):
        raise
    except Exception as error:
        raise Unreadable(reason_of(error)) from None
    return f"{status.st_ino} {status.st_mtime_ns} {status.st_size}"


def _regular(path: str) -> str:
    """Opening a pipe or a device would wait or never end."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise Unreadable("is a folder, not a file")
    if not stat.S_ISREG(mode):
        raise Unreadable("not a regular file")
    return path
