"""Guard against server-side request forgery: only the host that the user typed may be private.

Otherwise the author of a table, or whoever answers at its address, could make us call services of this machine, of its
network, or of its cloud, by rows or by redirects. The IP address is checked when the connection is made, so redirects
and changed DNS entries are covered as well."""

from __future__ import annotations

import ipaddress
import os
import socket
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from twothirds.sources.errors import DatasetError, Unreadable

VARIABLE = "TWOTHIRDS_PRIVATE_HOSTS"
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NOT_PUBLIC = [  # site-local, IPv4-compatible, local-use NAT64, documentation, segment routing
    ipaddress.ip_network(block) for block in ("fec0::/10", "::/96", "64:ff9b:1::/48", "3fff::/20", "5f00::/16")
]


class PrivateAddress(Unreadable):
    pass


@dataclass(slots=True)
class _Request:
    anywhere: bool
    refused: str | None = None


_under_way: ContextVar[_Request] = ContextVar("request under way")


def home_of(location: str) -> str | None:
    """Host and port of a data set on the web, or in an archive there."""
    web = next((part for part in location.split("::") if part.startswith(("http://", "https://"))), None)
    return None if web is None else _host_and_port(web)


def options_for_rows(home: str | None) -> dict[str, Any]:
    """For fsspec: how to fetch what rows of a data set name."""
    return _options(home, "a table may not name the host {host}, which is not public: download the image")


def options_for_user(location: str) -> dict[str, Any]:
    """For fsspec: how to fetch what the user named (a table, an archive, the truth beside them)."""
    return _options(home_of(location), "redirected to {host}, which is not public: download the data set")


def _options(home: str | None, refusal: str) -> dict[str, Any]:
    client = {"get_client": _client_factory(home, os.environ.get(VARIABLE, ""), refusal)}
    return {"http": client, "https": client}


def refusal_in(error: BaseException | None) -> PrivateAddress | None:
    """The refusal behind an error: fsspec reports every failure as a missing file, and keeps the cause."""
    while error is not None and not isinstance(error, PrivateAddress):
        error = error.__cause__ or error.__context__
    return error


def is_public(address: str) -> bool:
    """Whether an IP address is public; an IPv4 address inside an IPv6 one must be public too."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = [found.ipv4_mapped, found.sixtofour, *(found.teredo or ())]
        if found in _NAT64:
            inner.append(ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF))
        if not all(is_public(str(part)) for part in inner if part is not None):
            return False
        if any(found in block for block in _NOT_PUBLIC):  # some of which Python takes for global
            return False
        found = found.ipv4_mapped or found
    return found.is_global and not found.is_multicast


@lru_cache(maxsize=64)  # fsspec reuses a file system only if its options are identical
def _client_factory(home: str | None, allowed: str, refusal: str) -> Any:
    own = {home, *map(_entry, filter(None, (part.strip() for part in allowed.split(","))))}

    async def note_target(request: Any, handler: Any) -> Any:
        url = request.url
        request_made = _Request(not own.isdisjoint((f"{url.raw_host}:{url.port}", f"{url.raw_host}:")))
        _under_way.set(request_made)
        try:
            return await handler(request)
        except Exception as error:
            if request_made.refused is None:
                raise
            raise PrivateAddress(_refusal(refusal, url, request_made.refused)) from error

    async def client(**named: Any) -> Any:
        import aiohttp

        connector = aiohttp.TCPConnector(socket_factory=_socket)
        return aiohttp.ClientSession(**(named | {"connector": connector, "middlewares": (note_target,)}))

    return client


def _socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, _, (host, *_) = address
    request = _under_way.get()
    if not request.anywhere and not is_public(host):
        request.refused = host
        raise OSError(f"{host} is not a public address")
    return socket.socket(family, kind, protocol)


def _refusal(refusal: str, url: Any, address: str) -> str:
    shown = f"[{url.raw_host}]" if ":" in url.raw_host else url.raw_host
    at = "" if url.raw_host == address else f" ({address})"
    remedy = f"or set {VARIABLE}={shown}:{url.port} if you trust its author"
    return f"{refusal.format(host=shown + at)}, {remedy}"


def _entry(text: str) -> str:
    """`host:port`, or `host:` for all of its ports."""
    from yarl import URL

    try:
        url = URL(f"http://{text}")
        if url.raw_host and url == url.origin() and len(text.split()) == 1:
            return f"{url.raw_host}:{url.explicit_port or ''}"
    except ValueError:
        pass
    raise DatasetError(
        f"{VARIABLE} has {text!r}, which is not a host: write host or host:port, with commas between them"
    )


def _host_and_port(address: str) -> str | None:
    from yarl import URL

    try:
        url = URL(address)
    except ValueError:
        return None
    return f"{url.raw_host}:{url.port}"
