"""Translate errors of Google's clients, and refusals of its REST APIs, into `CallError`."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from rankbeam.transforms.clients.secrets import HIDDEN
from rankbeam.transforms.records import errors
from rankbeam.transforms.records.errors import CallError, FailureKind, Unreachable

T = TypeVar("T")
_LONGEST_MESSAGE = 300
# A word with a JSON web token is tried once, at its beginning: `-eyJ` may be repeated.
_TOKENS = re.compile(r"(?i)\b(?:bearer\s+\S+|ya29\.\S+)|(?<![\w-])(?=[\w-]++\.[\w.-])[\w-]*?\beyJ[\w-]+\.[\w.-]+")
_REFUSED_GRANTS = re.compile(r"invalid_grant|invalid_client|unauthorized_client|invalid_scope|Reauthentication")
_NOT_CONNECTED = re.compile("failed to connect to all addresses|DNS resolution failed|name resolution", re.IGNORECASE)

_INVALID = ("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED", "ALREADY_EXISTS")
_KINDS = {
    **dict.fromkeys(_INVALID, FailureKind.INVALID),
    "RESOURCE_EXHAUSTED": FailureKind.QUOTA,
    "DEADLINE_EXCEEDED": FailureKind.TIMEOUT,
    "PERMISSION_DENIED": FailureKind.PERMISSION,
    "UNAUTHENTICATED": FailureKind.PERMISSION,
    "NOT_FOUND": FailureKind.NOT_FOUND,
}
"""Kinds by the name of the gRPC status. All other statuses are transient: the service or the network is unavailable."""

_HTTP_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    429: "RESOURCE_EXHAUSTED",
    501: "UNIMPLEMENTED",
    504: "DEADLINE_EXCEEDED",
}
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")


def kind_of(status: str) -> FailureKind:
    return _KINDS.get(status, FailureKind.UNAVAILABLE)


def call_error(error: Exception) -> CallError:
    import grpc
    from google.api_core.exceptions import from_grpc_error
    from google.auth.exceptions import GoogleAuthError

    if isinstance(error, GoogleAuthError):
        return _of_credentials(error)
    if isinstance(error, grpc.RpcError):
        error = from_grpc_error(error)
    status, message = _status(error), str(getattr(error, "message", None) or error)
    kind = kind_of(status)
    if kind is FailureKind.UNAVAILABLE and _REFUSED_GRANTS.search(message):
        kind = FailureKind.PERMISSION  # gRPC reports refused credentials as unavailable
    if kind is FailureKind.UNAVAILABLE and _NOT_CONNECTED.search(message):
        return Unreachable(short_message(f"{status}: {message}"))
    hinted = kind in (FailureKind.QUOTA, FailureKind.UNAVAILABLE)
    return CallError(
        kind, short_message(f"{status}: {message}"), retry_after_s=_retry_after_s(error) if hinted else None
    )


def _of_credentials(error: Any) -> CallError:
    from google.auth.exceptions import TransportError

    is_transient = isinstance(error, TransportError) or error.retryable
    kind = FailureKind.UNAVAILABLE if is_transient else FailureKind.PERMISSION
    return CallError(kind, short_message(f"credentials: {error}"))


def _status(error: Exception) -> str:
    status = getattr(error, "grpc_status_code", None)
    return status.name if status is not None else _HTTP_STATUS.get(getattr(error, "code", None) or 0, "UNKNOWN")


def _retry_after_s(error: Exception) -> float | None:
    from google.rpc.error_details_pb2 import RetryInfo

    hints = [detail.retry_delay for detail in getattr(error, "details", ()) if isinstance(detail, RetryInfo)]
    return max(0.0, hints[0].seconds + hints[0].nanos / 1e9) if hints else None


def short_message(message: str) -> str:
    """A message of Google's in one line, without tokens, shortened to 300 characters."""
    return errors.shortened(_TOKENS.sub(HIDDEN, " ".join(message.split())), _LONGEST_MESSAGE)


def build_request(make: Callable[[], T]) -> T:
    try:
        return make()
    except (ValueError, TypeError) as error:
        raise CallError(FailureKind.INVALID, short_message(f"the request cannot be built: {error}")) from error


def refusal(kind: FailureKind, status: int, body: bytes, retry_after_s: float | None) -> CallError:
    """The error of a response whose HTTP status is not 200; its body may be a proxy's instead of Google's."""
    error = _error(body)
    name, text = error.get("status") or "", error.get("message") or body.decode(errors="replace")
    details = list(mappings(error.get("details")))
    wait = wait_s(details, retry_after_s) if kind in (FailureKind.QUOTA, FailureKind.UNAVAILABLE) else None
    message = short_message(f"HTTP {status} {name}: {text}")
    return CallError(kind, message, retry_after_s=wait, stops_pool=kind is FailureKind.QUOTA and is_daily(details))


def wait_s(details: list[Mapping[str, Any]], otherwise: float | None) -> float | None:
    """The seconds that RetryInfo asks to wait; another value without it."""
    for detail in details:
        delay = _DELAY.fullmatch(str(detail.get("retryDelay", "")))
        if delay is not None and str(detail.get("@type", "")).endswith("RetryInfo"):
            return float(delay[1])
    return otherwise


def is_daily(details: list[Mapping[str, Any]]) -> bool:
    """Return whether a quota of the day is used up: it is not asked again today."""
    violations = [violation for detail in details for violation in mappings(detail.get("violations"))]
    return any("PerDay" in str(violation.get("quotaId", "")) for violation in violations)


def mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of a list; none for any other value."""
    return (item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else iter(())


def _error(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    error = value.get("error") if isinstance(value, dict) else None
    return error if isinstance(error, dict) else {}
