"""Addresses of services: the public one, a private endpoint, or a stand-in on this machine."""

import asyncio
import re
import socket
import ssl
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from rankbeam.transforms.records.errors import InputError

_ENDPOINT = re.compile(r"(?:(?P<scheme>https?)://)?(?P<host>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?/?")
_LOOPBACK = {"localhost", "127.0.0.1", "[::1]"}
_PROBE_TIMEOUT_S = 2.0


def _checked_endpoint(value: str) -> str:
    match = _ENDPOINT.fullmatch(value)
    if match is None or int(match["port"] or 0) > 65_535:
        raise ValueError("is not an address; give host or host:port, or http://host:port for a server without TLS")
    return value


Endpoint = Annotated[str, AfterValidator(_checked_endpoint)]
"""The address of a service: `host`, `host:port`, `https://host:port`, or `http://host:port` without TLS.

Credentials go only to servers with TLS. For a server on this machine, such as an emulator, the scheme may be omitted:
a connection attempt shows whether the server uses TLS.
"""


@dataclass(frozen=True)
class Address:
    """The address of a service."""

    target: str
    secure: bool


async def address_of(endpoint: str) -> Address:
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None:
        raise InputError(f"{endpoint!r} is not an address; give host or host:port")
    scheme, host, port = match["scheme"], match["host"], match["port"]
    secure = scheme != "http"
    if scheme is None and port is not None and host in _LOOPBACK:
        secure = await asyncio.to_thread(_speaks_tls, host.strip("[]"), int(port))
    return Address(f"{host}:{port or (443 if secure else 80)}", secure)


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # gRPC verifies; nothing is sent here
    context.set_alpn_protocols(["h2"])
    try:
        with socket.create_connection((host, port), _PROBE_TIMEOUT_S) as plain, context.wrap_socket(plain):
            return True
    except OSError:  # ssl's errors are OSErrors too
        return False
