"""Retrieving as remote work: sources that ask the same go as far as the farthest, so that one call serves all."""

from rankbeam.transforms.clients.retrievers.base import Retrieve, payload_of, with_common_depth
from rankbeam.transforms.clients.retrievers.http import Http
from rankbeam.transforms.records.calls.steps import Call, SearchDepth


def http(**parameters: object) -> Http:
    return Http.model_validate({"url": "http://none.invalid/search", "results": "hits", "id": "id", **parameters})


def request_of(work: Retrieve) -> Call:
    (question,) = work.questions(["who?"])
    (call,) = next(work.steps(question))
    return call


def test_sources_that_ask_the_same_ask_as_far_as_any_of_them() -> None:
    near, far = SearchDepth(5), SearchDepth(100, 0.3)
    works = {
        0: Retrieve("a", "http", http(), near),
        1: Retrieve("b", "http", http(id="other"), far),
        2: Retrieve("c", "http", http(url="http://none.invalid/other"), near),
    }
    first, second, third = (request_of(work) for work in with_common_depth(works).values())
    assert first.key == second.key != third.key
    assert first.depth == second.depth == SearchDepth(100)
    assert first.payload == second.payload == payload_of("who?", SearchDepth(100))
    assert third.depth == near


def test_sources_that_rerank_are_asked_apart() -> None:
    works = {k: Retrieve(f"{k}", "http", http(derive=False), SearchDepth(k)) for k in (5, 10)}
    assert with_common_depth(works) == works
    assert len({request_of(work).key for work in works.values()}) == 2
