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

from sources.errors import DatasetError

REDACTED = "***"
MIN_SECRET_CHARS = 4  # a shorter secret would be found everywhere
# Words of a parameter's name. A secret word makes any value a secret, an ambiguous one only a value that is as long as
# a key and no common word.
_WORDS = {"auth", "authorization", "bearer", "hmac", "jwt", "pass", "passwd", "pwd", "sas", "sig", "token"}
_AMBIGUOUS = {"code", "key", "policy", "session", "sid", "ticket"}
_PARTS = (
    *(
        "accesskey",
        "apikey",
        "credential",
        "password",
        "secret",
        "signature",
        "authtoken",
        "sessiontoken",
        "privatekey",
    ),
    *(
        "accesscode",
        "authcode",
        "passcode",
        "passphrase",
        "sharedkey",
        "signingkey",
        "masterkey",
        "accountkey",
        "appkey",
    ),
    *("sessionkey", "sessionid", "encryptionkey", "licensekey", "subscriptionkey", "clientkey", "userkey"),
)
MIN_KEY_CHARS = 8  # of the value of an ambiguous parameter that may be a secret
_PUBLIC_NAMES = {  # with an ambiguous word in them
    *("airportcode", "areacode", "barcode", "colorcode", "colourcode", "countrycode", "currencycode", "errorcode"),
    *("facetkey", "fipscode", "foreignkey", "geocode", "groupkey", "icdcode", "isocode", "keycode", "langcode"),
    *("languagecode", "localecode", "naicscode", "partitionkey", "plotkey", "postalcode", "postcode", "primarykey"),
    *("productcode", "promocode", "regioncode", "rowkey", "sortkey", "statecode", "stationcode", "statuscode"),
    *("datakey", "keyfield", "keycolumn", "ordercode", "zipcode", "privacypolicy", "retentionpolicy", "coursecode"),
}
_PUBLIC_VALUES = {  # that are as long as a key
    *("category", "latitude", "longitude", "language", "location", "population", "timestamp", "filename", "username"),
    *("continent", "precision", "elevation", "published", "publisher", "temperature", "description", "quantity"),
    *("standard", "identifier", "image_id", "label_id", "postcode", "postal_code", "country_code", "created_at"),
    *("updated_at", "customer", "customer_id", "document", "document_id", "category_id", "location_id", "station_id"),
    *("species_name", "full_name", "first_name", "last_name", "relevance", "ascending", "descending", "commonname"),
    *("read-only", "readonly", "read-write", "public-read", "no-cache", "overwrite", "immutable", "homepage"),
}
# Long and opaque, but not secret.
_VERSIONS = {
    *("versionid", "generation", "sha256", "sha1", "sha512", "md5", "checksum", "digest", "commit", "etag"),
    *("rev", "revision", "version"),
}
MIN_OPAQUE_CHARS = 20  # of a value that may be a secret whatever its name
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
    words = _words_of(name)
    return not (_WORDS | _AMBIGUOUS).isdisjoint(words) or any(part in "".join(words) for part in _PARTS)


def _words_of(name: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", unquote(name)).lower())


def _is_secret(name: str, value: str) -> bool:
    """Whether the name of a parameter makes its value a secret."""
    words = _words_of(name)
    whole = "".join(words)
    if not _WORDS.isdisjoint(words) or any(part in whole for part in _PARTS):
        return True
    may_be = len(value) >= MIN_KEY_CHARS and unquote(value).lower() not in _PUBLIC_VALUES
    return not _AMBIGUOUS.isdisjoint(words) and whole not in _PUBLIC_NAMES and may_be


def has_store_password(text: str) -> bool:
    """Whether a database URL, or a connection string such as `host=h password=p`, holds a password."""
    return has_password(text) or "password=" in text.lower()


def has_password(text: str) -> bool:
    """Whether a URL in the text holds a password; on the web a user name without a password is a token as well."""
    for part in _parts(text):
        user = _USER.search(_up_to_user(part))
        if user and (":" in user[0].rstrip(":@") or part.startswith("http")) and not _HELD.fullmatch(user[0]):
            return True
    return False


def secret_of(text: str) -> str:
    """Which kind of secret the URLs of a text hold, without repeating it; empty if none."""
    if has_password(text):
        return "a password"
    for part in _parts(text):
        for name, _ in _secret_parameters(part):
            return f"a secret (its parameter {name})" if is_secret_name(name) and name.isprintable() else "a secret"
    return ""


def secret_values(url: str) -> list[str]:
    """The parameter values that `without_secrets` redacts, as written and unquoted."""
    found = [value for part in _parts(url) for _, value in _secret_parameters(part)]
    return [form for value in found for form in (value, unquote(value))]


def without_secrets(text: str) -> str:
    """The text as it may be stored and printed: its URLs without users, passwords, tokens and signatures."""
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


def _parts(text: str) -> list[str]:
    """The URLs of a text, with chained ones (`zip://a::https://b`) taken apart."""
    return [part for url in _URL.findall(text) for part in url.split("::")]


def _redacted_url(part: str) -> str:
    head = _up_to_user(part)
    return _PARAMETER.sub(_redacted_parameter, _USER.sub("", head) + part[len(head) :])


def _up_to_user(part: str) -> str:
    """The part that may name a user: searching beyond the last @ would take quadratic time."""
    return part[: part.rfind("@") + 1]


def _secret_parameters(part: str) -> Iterator[tuple[str, str]]:
    for found in _PARAMETER.finditer(part):
        if (value := _secret_value(found)) is not None:
            yield found["name"], value


def _secret_value(found: re.Match[str]) -> str | None:
    if not found["is"]:
        return found["name"] if _is_opaque(found["name"]) else None
    if found["value"] in ("", REDACTED) or _VARIABLE.fullmatch(found["value"]):
        return None
    opaque = _is_opaque(found["value"]) and found["name"].lower() not in _VERSIONS
    return found["value"] if _is_secret(found["name"], found["value"]) or opaque else None


def _is_opaque(value: str) -> bool:
    """Whether letters and digits are mixed as in a random key, not as in a word, name or path."""
    return len(value) >= MIN_OPAQUE_CHARS and 3 * len(_CHANGES.findall(value)) >= len(value)


def _redacted_parameter(found: re.Match[str]) -> str:
    if _secret_value(found) is None:
        return found[0]
    return f"{found['name']}={REDACTED}" if found["is"] else REDACTED


def secret_forms(key: str, url: str | None) -> tuple[str, ...]:
    """Every form in which a server may repeat a key or the secrets of a URL, longest first."""
    words = [key, quote(key, safe=""), *secret_values(url or "")]
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
        text = text.replace(word, REDACTED)
    return text


def _longest_first(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({word for word in words if len(word) >= MIN_SECRET_CHARS}, key=lambda word: (-len(word), word)))
