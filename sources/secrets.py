"""The one place that knows what a secret is: names of secret parameters, passwords in URLs, and how both are redacted.

URLs can hold a password before the @ and a token or signature after the ?. They are redacted before a URL is stored or
printed, and so are the keys that a server or an error message repeats. (The store, which imports nothing of ours, masks
passwords of connection URLs itself.)"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, unquote, urlsplit

from twothirds.sources.errors import DatasetError

REDACTED = "***"
MIN_SECRET_CHARS = 4  # a shorter secret would be found everywhere
MIN_KEY_CHARS = 8  # of the value of a parameter that may be a key, a code or a name for something
MIN_OPAQUE_CHARS = 20  # of a value that may be a secret whatever its name
_SECRET_WORDS = {"auth", "authorization", "bearer", "hmac", "jwt", "pass", "passwd", "pwd", "sas", "sig", "token"}
_KEY_WORDS = {"code", "key", "policy", "session", "sid", "ticket"}  # `key=year` is none, `key=AIzaSyD-9tSr` is one
_SECRET_PARTS = re.compile(
    r"password|passcode|passphrase|secret|signature|credential|sessionid|(?:auth|session)token|(?:access|auth)code|"
    r"(?:access|account|api|app|client|encryption|license|master|private|session|shared|signing|subscription|user)key"
)
# Parameters whose values are shown; those of the second row even if they look random.
_PUBLIC = {"download", "file", "format", "gid", "id", "limit", "name", "offset", "page", "path", "size", "v"}
_VERSIONS = {"commit", "etag", "generation", "md5", "rev", "revision", "sha256", "version", "versionid"}
_CHANGES = re.compile(r"(?=[a-z][A-Z0-9]|[A-Z][a-z0-9]|[0-9][A-Za-z])")
_URL = re.compile(r"[A-Za-z][\w+.-]{0,40}://[^\s'\"<>]+")  # the limit keeps long words from taking quadratic time
# Up to the last @ of the host's part; where a password holds a slash, up to the last @ of all.
_USER = re.compile(r"(?<=://)(?!user(?::password)?@)(?:[^/?#\s:@]*:(?!\d+(?:/|$))\S*|[^/?#\s]*)@")
_PARAMETER = re.compile(r"(?<=[?&;#])(?P<name>[^?&;#=]*)(?P<is>=?)(?P<value>[^&;#]*)")
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_NOT_FOR_ADDRESSES = ("OPENAI_", "TWOTHIRDS_", "PREFECT_", "AWS_")  # who names a data set must not get these
_HELD = re.compile(rf"(?:[^:]*:)?{_VARIABLE.pattern}@")  # the password is in a variable

_values_of_variables: set[str] = set()  # that URLs referred to: to be redacted everywhere


def is_secret_name(name: str) -> bool:
    """Whether a parameter of this name holds a secret, as `token`, `X-Amz-Signature` and `sig` do."""
    return _is_secret(name, MIN_KEY_CHARS * "?")


def _is_secret(name: str, value: str) -> bool:
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", unquote(name)).lower())
    if not _SECRET_WORDS.isdisjoint(words) or _SECRET_PARTS.search("".join(words)):
        return True
    return not _KEY_WORDS.isdisjoint(words) and len(value) >= MIN_KEY_CHARS


def _is_opaque(value: str) -> bool:
    """Whether letters and digits are mixed as in a random key, not as in a word, name or path."""
    return len(value) >= MIN_OPAQUE_CHARS and 3 * len(_CHANGES.findall(value)) >= len(value)


def has_store_password(text: str) -> bool:
    """Whether a database URL, or a connection string such as `host=h password=p`, holds a password."""
    return _has_password(text) or "password=" in text.lower()


def _has_password(text: str) -> bool:
    """On the web a user name without a password is a token as well."""
    for url in _urls(text):
        user = _USER.search(_up_to_user(url))
        if user and (":" in user[0].rstrip(":@") or url.startswith("http")) and not _HELD.fullmatch(user[0]):
            return True
    return False


def secret_of(text: str) -> str:
    """Which kind of secret the URLs of a text hold, without repeating it; empty if none. A parameter is a secret by its
    name, or by a value that looks random."""
    if _has_password(text):
        return "a password"
    for name, _ in _secret_parameters(text):
        return f"a secret (its parameter {name})" if is_secret_name(name) and name.isprintable() else "a secret"
    return ""


def _secret_parameters(text: str) -> Iterator[tuple[str, str]]:
    for found in (found for url in _urls(text) for found in _PARAMETER.finditer(url)):
        value = _hidden_value(found)
        if value and (_is_secret(found["name"], value) or _is_opaque(value)):
            yield found["name"], value


def holds_secret(text: str) -> bool:
    """Whether the URLs of a text hold a secret, or the text the value of a variable that a URL referred to."""
    return bool(secret_of(text)) or any(value in text for value in _values_of_variables)


def without_secrets(text: str) -> str:
    """The text as it may be stored and printed: its URLs without users, passwords and values of parameters that are not
    known to be harmless."""
    text = _URL.sub(lambda found: "::".join(map(_redacted_url, found[0].split("::"))), text)
    return redacted(text, sorted(_values_of_variables, key=len, reverse=True))


def with_variables(url: str) -> str:
    """The URL with `${NAME}` replaced by the variable's value. Only for what the user wrote: a URL in a table could
    leak any variable."""

    def value_of(found: re.Match[str]) -> str:
        if found[1].startswith(_NOT_FOR_ADDRESSES):
            raise DatasetError(f"data set {url!r}: {found[1]} is not for addresses: export a variable of another name")
        value = os.environ.get(found[1], "")
        if not value:
            raise DatasetError(f"data set {without_secrets(url)!r}: the variable {found[1]} is not set: export it")
        if len(value) >= MIN_SECRET_CHARS:
            _values_of_variables.update((value, unquote(value)))
        return value

    return _VARIABLE.sub(value_of, url)


def _urls(text: str) -> list[str]:
    """The URLs of a text, with chained ones (`zip://a::https://b`) taken apart."""
    return [url for chain in _URL.findall(text) for url in chain.split("::")]


def _redacted_url(url: str) -> str:
    head = _up_to_user(url)
    return _PARAMETER.sub(_redacted_parameter, _USER.sub("", head) + url[len(head) :])


def _up_to_user(url: str) -> str:
    """The part that may name a user: searching beyond the last @ would take quadratic time."""
    return url[: url.rfind("@") + 1]


def _hidden_value(found: re.Match[str]) -> str:
    """What is not shown of a parameter; of one without `=`, as `?3HL4kqtJ…` or `#page`, only what looks random."""
    name, value = found["name"].lower(), found["value"]
    if not found["is"]:
        return found["name"] if _is_opaque(found["name"]) else ""
    if value == REDACTED or _VARIABLE.fullmatch(value) or name in _VERSIONS:
        return ""
    return "" if name in _PUBLIC and not _is_opaque(value) else value


def _redacted_parameter(found: re.Match[str]) -> str:
    if not _hidden_value(found):
        return found[0]
    return f"{found['name']}={REDACTED}" if found["is"] else REDACTED


def secret_forms(key: str, url: str | None) -> tuple[str, ...]:
    """Every form in which a server may repeat a key or the secrets of a URL, longest first."""
    values = [value for _, value in _secret_parameters(url or "")]
    words = [key, quote(key, safe=""), *values, *map(unquote, values)]
    try:
        address = urlsplit(url or "")
        password = address.password
    except ValueError:
        return _longest_first(words)
    if address.username and address.scheme in ("http", "https"):
        words += [address.username, unquote(address.username)]
    if password:
        plain, user = unquote(password), unquote(address.username or "")
        words += [password, plain, quote(plain, safe=""), base64.b64encode(f"{user}:{plain}".encode()).decode()]
    return _longest_first(words)


def redacted(text: str, words: Iterable[str]) -> str:
    for word in words:
        text = text.replace(word, REDACTED)
    return text


def _longest_first(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({word for word in words if len(word) >= MIN_SECRET_CHARS}, key=lambda word: (-len(word), word)))
