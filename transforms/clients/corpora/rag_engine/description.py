"""Display names and descriptions of corpora, as rankbeam writes them, since the service has no labels.

A corpus belongs to rankbeam if both say so. No other corpus is ever reused, changed or deleted.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rankbeam.transforms.clients.corpora.rag_engine.data_api import ListedCorpus

_PREFIX = "rankbeam/v1/"
_DISPLAY_NAME = re.compile(r"rankbeam/v1/(?P<hash>[0-9a-f]{16})")
_VERSION = 1
RUN = "run"  # value of `keep` for a corpus that is deleted at the end of the run
_DAYS = re.compile(r"(\d+)d")
_LONGER_BY = timedelta(hours=12)  # a use that extends a corpus' expiry by less is not worth a request


@dataclass(frozen=True)
class CorpusDescription:
    """The description of a corpus."""

    identity: str
    name: str
    documents: str
    specification: Mapping[str, Any]
    run: str
    created: str
    keep: str = "always"  # "run", "always", or a number of days such as "14d"
    expires: str = ""  # when it expires, in ISO 8601; "" for never
    complete: bool = False
    files: int = 0
    failed: int = 0
    staging: str = ""
    claim: Mapping[str, Any] | None = None
    users: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def display_name(self) -> str:
        return f"{_PREFIX}{self.identity[:16]}"

    def description(self) -> str:
        values = {name: value for name, value in asdict(self).items() if value or name not in ("claim", "users")}
        return json.dumps({"rankbeam": _VERSION, **values}, sort_keys=True, ensure_ascii=False)

    def used(self, keep: str, now: datetime) -> "CorpusDescription":
        """The description after a use with this `keep`; a use with "run" does not shorten the life of a corpus."""
        if keep == "run":
            return self
        return replace(self, keep=keep, expires=expiry(keep, now))

    def is_expired(self, now: datetime) -> bool:
        return bool(self.expires) and datetime.fromisoformat(self.expires) <= now

    def ends_before(self, used: "CorpusDescription") -> bool:
        """Return whether a use changes the description, or extends the expiry, enough to update the corpus."""
        if self.keep == used.keep and self.expires and used.expires:
            return datetime.fromisoformat(used.expires) - datetime.fromisoformat(self.expires) > _LONGER_BY
        return self != used


def expiry(keep: str, now: datetime) -> str:
    """The expiry of something kept from now on, "" for never; a week for a run, which may be killed."""
    days = _DAYS.fullmatch("7d" if keep == "run" else keep)
    return "" if days is None else (now + timedelta(days=int(days[1]))).astimezone(UTC).isoformat(timespec="seconds")


def parse_description(corpus: ListedCorpus) -> CorpusDescription | None:
    """The description of a corpus that belongs to rankbeam; None for other corpora."""
    name = _DISPLAY_NAME.fullmatch(corpus.display_name)
    if name is None:
        return None
    try:
        values = json.loads(corpus.description)
        if values.pop("rankbeam") != _VERSION:
            return None
        known = {key: value for key, value in values.items() if key in CorpusDescription.__dataclass_fields__}
        description = CorpusDescription(**known)
        datetime.fromisoformat(description.expires or "2026-01-01")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return description if description.identity.startswith(name["hash"]) else None
