"""Replies of models as they arrive: of limited size, of any shape, and with vectors of one length."""

import json
import math
from dataclasses import dataclass
from typing import Any

from rankbeam.transforms.records.calls.reply import Tokens
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind

MOST_BYTES = 16 * 2**20
"""A reply may have this many bytes, unpacked; a compressed one of a few hundred kilobytes may hold a gigabyte."""

_LARGEST = 3.4e38  # components are computed with in single precision
_SHOWN = 60


def object_of(body: bytes) -> dict[str, Any]:
    """The JSON object of a reply.

    Raises:
        CallError: there is none; a reply that is cut off is `UNAVAILABLE`, since another attempt may be whole.

    >>> object_of(b'{"a": [1]}')
    {'a': [1]}
    """
    if len(body) > MOST_BYTES:
        raise too_large()
    try:
        value = json.loads(body)
    except json.JSONDecodeError as error:
        raise CallError(FailureKind.UNAVAILABLE, f"the answer is not JSON: {error}") from None
    except (ValueError, RecursionError) as error:
        raise unreadable(error) from None
    if not isinstance(value, dict):
        raise CallError(FailureKind.MALFORMED, "the answer is no JSON object")
    return value


def too_large() -> CallError:
    """The failure of a call whose reply has more than `MOST_BYTES`."""
    return CallError(FailureKind.MALFORMED, f"the answer has more than {MOST_BYTES >> 20} MB")


def unreadable(error: Exception) -> CallError:
    """The failure of a call whose reply raises an error where it is read."""
    first = str(error).strip().partition("\n")[0]
    return CallError(FailureKind.MALFORMED, f"the answer cannot be read: {type(error).__name__}: {first[:200]}")


@dataclass
class Vectors:
    """Checks that all embeddings of a service have one length.

    Attributes:
        service: its name in messages.
        length: of every vector; until one has arrived, None where it is not configured.
    """

    service: str
    length: int | None

    def checked(self, values: Any, text: str, tokens: Tokens) -> tuple[float, ...]:
        """An embedding that can be kept.

        Args:
            values: of the reply: any JSON value.
            text: that was embedded, for messages.
            tokens: that the call used.

        Raises:
            CallError: it is none, or has another length than the others.
        """
        vector = _vector(values)
        if vector is None:
            raise CallError(FailureKind.MALFORMED, "the answer holds no embedding", tokens=tokens)
        self.length = self.length or len(vector)
        if len(vector) != self.length:
            message = (
                f"the embedding of {text[:_SHOWN]!r} by {self.service} has {len(vector):,} components, "
                f"and not {self.length:,}"
            )
            raise CallError(FailureKind.MALFORMED, message, tokens=tokens)
        return vector


def _vector(values: Any) -> tuple[float, ...] | None:
    if not isinstance(values, list) or not values:
        return None
    if not all(isinstance(x, int | float) and not isinstance(x, bool) and abs(x) <= _LARGEST for x in values):
        return None
    return None if any(math.isnan(x) for x in values) else tuple(map(float, values))
