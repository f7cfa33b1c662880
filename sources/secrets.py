"""Addresses can be keys: a password before the @, a token or a signature after the ?. Whatever is kept or shown of one
goes without them. They are asked for only when a file is opened.

Secrets cut out of what others say: a server may echo the key that it was sent, an error the address."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, unquote, urlsplit

from sources.errors import DatasetError

CUT = "***"
SHORTEST = 4  # a secret of fewer characters would be found everywhere
_WORDS = {
    *("auth", "authorization", "bearer", "code", "hmac", "jwt", "key", "pass", "passwd", "policy", "pwd", "sas"),
    *("session", "sid", "sig", "ticket", "token"),
}
_PARTS = ("accesskey", "apikey", "credential", "password", "secret", "signature", "authtoken", "sessiontoken")
_VERSIONS = ("versionid", "generation")  # long and opaque, but they open nothing
OPAQUE = 20  # characters of a value that may be a secret whatever it is called
_CHANGES = re.compile(r"(?=[a-z][A-Z0-9]|[A-Z][a-z0-9]|[0-9][A-Za-z])")
_URL = re.compile(r"[A-Za-z][\w+.-]{0,40}://[^\s'\"<>]+")  # a limit, for without one long words take time without end
# Up to the last @ of the host's part. A password that holds a slash makes it no address at all: up to the last of all.
_USER = re.compile(r"(?<=://)(?!user(?::password)?@)(?:[^/?#\s:@]*:(?!\d+(?:/|$))\S*|[^/?#\s]*)@")
_PARAMETER = re.compile(r"(?<=[?&;#])(?P<name>[^?&;#=]*)(?P<is>=?)(?P<value>[^&;#]*)")
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")

_HELD = re.compile(rf"(?:[^:]*:)?{_VARIABLE.pattern}@")  # a variable holds it

_filled_in: set[str] = set()  # what variables held


def is_secret_name(name: str) -> bool:
    """Whether a parameter of this name is taken for a secret, as `token`, `X-Amz-Signature` and `sig` are."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", unquote(name)).lower())
    return not _WORDS.isdisjoint(words) or any(part in "".join(words) for part in _PARTS)


def has_password(text: str) -> bool:
    """Whether an address in the text says who asks; on the web a name without a password is a token as well."""
    for part in _parts(text):
        user = _USER.search(_up_to_user(part))
        if user and (":" in user[0].rstrip(":@") or part.startswith("http")) and not _HELD.fullmatch(user[0]):
            return True
    return False


def secret_of(text: str) -> str:
    """What is secret in the addresses of a text, in words that do not repeat it; empty where nothing is."""
    if has_password(text):
        return "a password"
    for part in _parts(text):
        for name, _ in _secret_parameters(part):
            return f"a secret (its parameter {name})" if is_secret_name(name) and name.isprintable() else "a secret"
    return ""


def secret_words(url: str) -> list[str]:
    """The values that `without_secrets` cuts out of the parameters, as they stand there and in plain."""
    found = [value for part in _parts(url) for _, value in _secret_parameters(part)]
    return [form for value in found for form in (value, unquote(value))]


def without_secrets(text: str) -> str:
    """A text as it may be kept and shown: its addresses without users, passwords, tokens and signatures."""
    text = _URL.sub(lambda found: "::".join(map(_shorn, found[0].split("::"))), text)
    for word in sorted(_filled_in, key=len, reverse=True):
        text = text.replace(word, CUT)
    return text


def filled(url: str) -> str:
    """With `${NAME}` replaced by the variable's value. Only for what the user wrote: an address in a table could carry
    any variable away."""

    def value_of(found: re.Match[str]) -> str:
        value = os.environ.get(found[1], "")
        if not value:
            raise DatasetError(f"data set {without_secrets(url)!r}: the variable {found[1]} is not set: export it")
        if len(value) >= SHORTEST:
            _filled_in.update((value, unquote(value)))
        return value

    return _VARIABLE.sub(value_of, url)


def _parts(text: str) -> list[str]:
    """Addresses may be chained."""
    return [part for url in _URL.findall(text) for part in url.split("::")]


def _shorn(part: str) -> str:
    head = _up_to_user(part)
    return _PARAMETER.sub(_cut, _USER.sub("", head) + part[len(head) :])


def _up_to_user(part: str) -> str:
    """No user is named after the last @; to look for one there takes time that grows with the square of the length."""
    return part[: part.rfind("@") + 1]


def _secret_parameters(part: str) -> Iterator[tuple[str, str]]:
    for found in _PARAMETER.finditer(part):
        if (value := _secret_value(found)) is not None:
            yield found["name"], value


def _secret_value(found: re.Match[str]) -> str | None:
    if not found["is"]:
        return found["name"] if _is_opaque(found["name"]) else None
    if found["value"] in ("", CUT) or _VARIABLE.fullmatch(found["value"]):
        return None
    opaque = _is_opaque(found["value"]) and found["name"].lower() not in _VERSIONS
    return found["value"] if is_secret_name(found["name"]) or opaque else None


def _is_opaque(value: str) -> bool:
    """Whether letters and digits follow one another as in no word, name or path."""
    return len(value) >= OPAQUE and 3 * len(_CHANGES.findall(value)) >= len(value)


def _cut(found: re.Match[str]) -> str:
    if _secret_value(found) is None:
        return found[0]
    return f"{found['name']}={CUT}" if found["is"] else CUT


def words_of(key: str, url: str | None) -> tuple[str, ...]:
    """Every form in which a key, and what is secret in an address, may come back."""
    words = [key, quote(key, safe=""), *secret_words(url or "")]
    try:
        parts = urlsplit(url or "")
        password = parts.password
    except ValueError:
        return _longest_first(words)
    if parts.username and parts.scheme in ("http", "https"):
        words += [parts.username, unquote(parts.username)]
    if password:
        plain, user = unquote(password), unquote(parts.username or "")
        words += [password, plain, quote(plain, safe=""), base64.b64encode(f"{user}:{plain}".encode()).decode()]
    return _longest_first(words)


def redacted(text: str, words: Iterable[str]) -> str:
    for word in words:
        text = text.replace(word, CUT)
    return text


def _longest_first(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({word for word in words if len(word) >= SHORTEST}, key=lambda word: (-len(word), word)))
