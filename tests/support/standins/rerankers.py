"""Rerankers over HTTP: Vertex AI's Ranking API in its REST form, and Cohere's.

POST /v1/projects/P/locations/L/rankingConfigs/C:rank {"model", "query", "records": [{"id", "content"}]}
→ {"records": [{"id": "1", "score": 0.5}]}, best first; at most 200 records
POST /v2/rerank {"model", "query", "documents": ["…"]} → {"results": [{"index": 1, "relevance_score": 0.5}]}
"""

import json
import math
import re
from typing import Any

from support.standins.http_protocol import STATUSES, HttpConnection, Request, listen
from support.standins.reception import Reception, Visit

MOST_RECORDS = 200
_RANK = re.compile(r"/v1/projects/[^/]+/locations/[^/]+/rankingConfigs/[^/]+:rank")
_NAMES = {429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 403: "PERMISSION_DENIED", 400: "INVALID_ARGUMENT"}


def relevance(query: str, text: str) -> float:
    """The share of the query's words that a text has, rounded as the services do."""
    words = set(re.findall(r"\w+", query.lower()))
    return round(len(words & set(re.findall(r"\w+", text.lower()))) / max(1, len(words)), 2)


class Rerankers(HttpConnection):
    """One connection of the services."""

    def parsed(self, request: Request) -> tuple[str, Any]:
        """The query, and the texts by id with the form of the reply."""
        body = json.loads(request.body)
        if request.target == "/v2/rerank":
            return body["query"], (list(enumerate(body["documents"])), "results")
        if not _RANK.fullmatch(request.target):
            raise LookupError(f"there is nothing at {request.target}")
        if len(body["records"]) > MOST_RECORDS:
            raise ValueError(f"at most {MOST_RECORDS} records are allowed")
        if not body["model"] or not all({"id", "content"} <= set(record) for record in body["records"]):
            raise ValueError("a record has no content")
        return body["query"], ([(record["id"], record["content"]) for record in body["records"]], "records")

    def answer(self, visit: Visit, parsed: Any) -> None:
        """Answer with scores, or go wrong as the visit's fault says."""
        texts, form = parsed
        if visit.fault == "quota_info":
            self.say(429, self._waiting(visit.hint_s))
        elif visit.fault in STATUSES:
            self.refuse(visit)
        elif visit.fault in ("reset", "drop_connection"):
            self.reset()
        else:
            self.say_spoilt(self._reply(visit, texts, form), visit.fault)

    def error(self, status: int, message: str) -> bytes:
        """As Google says it."""
        name = _NAMES.get(status, "UNKNOWN")
        return json.dumps({"error": {"code": status, "message": message, "status": name}}).encode()

    def _waiting(self, seconds: float) -> bytes:
        detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds:g}s"}
        error = {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED", "details": [detail]}
        return json.dumps({"error": error}).encode()

    def _reply(self, visit: Visit, texts: list[tuple[Any, str]], form: str) -> bytes:
        scored = [(name, relevance(visit.query, text)) for name, text in texts]
        scored = _changed(sorted(scored, key=lambda pair: -pair[1]), visit.fault)
        names = ("id", "score") if form == "records" else ("index", "relevance_score")
        return json.dumps({form: [dict(zip(names, pair, strict=True)) for pair in scored]}).encode()


def _changed(scored: list[tuple[Any, Any]], fault: str | None) -> list[tuple[Any, Any]]:
    (name, score), rest = scored[0], scored[1:]
    changed: dict[str | None, list[tuple[Any, Any]]] = {
        "empty": [],
        "fewer": rest or scored,
        "other_id": [(type(name)(999), score), *rest],
        "odd_id": [("first", score), *rest],
        "twice": [*scored, (name, score)],
        "no_number": [(name, math.nan), *rest],
        "no_score": [(name, None), *rest],
        "equal": [(other, 0.5) for other, _ in reversed(scored)],
    }
    return changed.get(fault, scored)


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    return await listen(lambda: Rerankers(reception), reception)
