"""A JSON search service over HTTP/1.1.

POST /search {"query": "…", "top_k": 10}
GET /search?q=…&k=10
→ {"hits": {"hits": [{"_id": "doc-1", "_score": 0.9, "_source": {"text": "…", "title": "…", "uri": "…"}}]}}
"""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.standins.http_protocol import STATUSES, HttpConnection, Request, listen
from support.standins.ranking import Rankings, Result, turned_around
from support.standins.reception import Reception, Visit

DEFAULT_TOP_K = 10


class Search(HttpConnection):
    """One connection of the search service."""

    def __init__(self, reception: Reception, rankings: Rankings) -> None:
        super().__init__(reception)
        self._rankings = rankings

    def parsed(self, request: Request) -> tuple[str, int]:
        """The query and the number of results that are wanted."""
        address = urlsplit(request.target)
        if address.path != "/search":
            raise LookupError(f"there is nothing at {address.path}")
        if request.method == "GET":
            parameters = parse_qs(address.query)
            return parameters.get("q", [""])[0], int(parameters.get("k", [DEFAULT_TOP_K])[0])
        body = json.loads(request.body)
        return str(body["query"]), int(body.get("top_k", DEFAULT_TOP_K))

    def answer(self, visit: Visit, body: Any) -> None:
        """Answer with results, or go wrong as the visit's fault says."""
        if visit.fault in STATUSES:
            self.refuse(visit)
        elif visit.fault in ("reset", "drop_connection"):
            self.reset()
        else:
            self._tell(visit, self._rankings.results(visit.query, 0, body))

    def error(self, status: int, message: str) -> bytes:  # noqa: ARG002  the base's signature
        """As many services say it."""
        return json.dumps({"error": message}).encode()

    def _tell(self, visit: Visit, results: list[Result]) -> None:
        if visit.fault == "malformed":
            self.say(200, _hits(results)[:-3])
        elif visit.fault == "partial":
            self.cut(_hits(results))
        else:
            self.reception.answered += 1
            self.say(200, _hits(_changed(results, visit.fault)))


async def start(reception: Reception) -> int:
    """Serve on a free port, and return it."""
    settings = reception.settings
    rankings = Rankings(settings.answers, settings.documents, distances=False)
    return await listen(lambda: Search(reception, rankings), reception)


def _changed(results: list[Result], fault: str | None) -> list[Result]:
    if fault == "empty":
        return []
    return turned_around(results) if fault == "wrong_order" else results


def _hits(results: list[Result]) -> bytes:
    hits = [
        {
            "_id": result.id,
            "_score": result.score,
            "_source": {"text": result.text, "title": result.title, "uri": result.uri},
        }
        for result in results
    ]
    return json.dumps({"hits": {"hits": hits}}).encode()
