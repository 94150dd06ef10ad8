"""Claims of corpora: however runs meet, and whichever of them is killed, one of them imports, and each file once."""

import heapq
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.rag_memory import MemoryApi, answered, state
from support.standins.rag_state import Behaviour, RagState

from rankbeam.transforms.clients.corpora.rag_engine.claims import claimant, holder_of, user_of
from rankbeam.transforms.clients.corpora.rag_engine.corpus_client import CorpusClient
from rankbeam.transforms.clients.corpora.rag_engine.data_api import Operation
from rankbeam.transforms.clients.corpora.rag_engine.description import RUN, CorpusDescription
from rankbeam.transforms.clients.corpora.rag_engine.importing import Track, UnfilledCorpus, fill_corpora, tracks
from rankbeam.transforms.clients.corpora.rag_engine.parameters import RagEngineCorpus
from rankbeam.transforms.clients.corpora.rag_engine.staging import StagedFiles, StagedFolder
from rankbeam.transforms.clients.corpora.rag_engine.work import STUCK_S, NeededCorpus, create_corpus, wait_for_end
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.leases.lease import Holder
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import ImportQuota, Quota
from rankbeam.transforms.records.calls.steps import PAUSE
from rankbeam.transforms.records.errors import CallError

LOCATION = "projects/p/locations/us-central1"
PARAMETERS = RagEngineCorpus(location=LOCATION, staging="gs://bucket/r", embedding_model="text-embedding-005")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FILES = 20
STAGED = StagedFiles("gs://bucket/r", (StagedFolder("a", tuple(f"{number}.txt" for number in range(FILES))),))
OBJECTS = {f"{STAGED.uri(folder)}/{name}": "text" for folder in STAGED.folders for name in folder.names}
ABOUT = CorpusDescription("0" * 32, "kb", "d", {}, "run", NOW.isoformat())


class Now:
    """A clock that a test sets."""

    at = 0.0

    def __call__(self) -> float:
        return self.at


def elsewhere(run: str) -> Holder:
    """A run of another machine, of which nobody here knows whether it is alive."""
    return replace(claimant(run, NOW), machine=f"machine of {run}", token=f"token of {run}")


def service(behaviour: Behaviour, clock: Now) -> RagState:
    def read(uri: str) -> dict[str, str]:
        return {name: text for name, text in OBJECTS.items() if name.startswith(uri)}

    return RagState(behaviour, clock, read, lambda *_: None)


def filling(resource: str, parameters: RagEngineCorpus = PARAMETERS) -> UnfilledCorpus:
    return UnfilledCorpus(NeededCorpus(ABOUT, parameters), resource, STAGED)


def simulated(random: Random, api: MemoryApi, clock: Now, works: list[Any], killed: dict[int, float]) -> dict[int, Any]:
    """Advance generators of calls side by side, with random latencies; returns the values of those that end.

    Args:
        random: source of random latencies and starts.
        api: API of the service.
        clock: clock of the service.
        works: the generators.
        killed: when some of them are not advanced any more.
    """
    values: dict[int, Any] = {}
    events = [(random.uniform(0, 60), number, None) for number in range(len(works))]
    heapq.heapify(events)
    while events and clock.at < 200_000:
        clock.at, number, answers = heapq.heappop(events)
        if clock.at >= killed.get(number, float("inf")):
            continue
        try:
            calls = works[number].send(answers)
        except StopIteration as stopped:
            values[number] = stopped.value
            continue
        (call,) = calls
        if call.service == PAUSE:
            heapq.heappush(events, (clock.at + float(call.payload), number, [None]))
            continue
        clock.at += random.uniform(0, 0.2)  # other runs go on before the answer arrives
        outcome = answered(api, call)
        heapq.heappush(events, (clock.at + random.uniform(0, 0.5), number, [outcome]))
    return values


@settings(max_examples=examples(100))
@given(
    seed=st.integers(0, 1 << 32),
    runs=st.integers(1, 4),
    claims=st.sampled_from(["first", "nobody"]),
    dies=st.booleans(),
    shows=st.booleans(),
    exclusive=st.booleans(),
    lost=st.integers(0, 1),
)
def test_one_run_imports_each_file_once(
    seed: int, runs: int, claims: str, dies: bool, shows: bool, exclusive: bool, lost: int
) -> None:
    random, clock = Random(seed), Now()
    behaviour = Behaviour(seconds_per_file=5.0, shows_operations=shows, exclusive=exclusive, lost_imports=lost * shows)
    there = RagState(
        behaviour, clock, lambda uri: {k: v for k, v in OBJECTS.items() if k.startswith(uri)}, lambda *_: None
    )
    api = MemoryApi(LOCATION, state=there)
    holders = [elsewhere(f"r{number}") for number in range(runs)]
    own = replace(ABOUT, claim=asdict(holders[0])) if claims == "first" else ABOUT
    (resource,) = simulated(random, api, clock, [create_corpus(LOCATION, NeededCorpus(own, PARAMETERS))], {}).values()
    works = [fill_corpora(LOCATION, print, Track((filling(resource),), 1400, holder)) for holder in holders]
    killed = {0: clock.at + random.uniform(0, 300)} if dies and runs > 1 else {}
    results = simulated(random, api, clock, works, killed)

    assert len(results) >= runs - len(killed)
    assert all(filled.error is None and filled.about.complete for (filled,) in results.values())
    assert sum(filled.imported for (filled,) in results.values()) <= FILES
    assert there.seen.most_imports == 1
    assert {times for files in there.seen.imports.values() for times in files.values()} == {1}
    assert sum(operation.counts["skipped"] for operation in there.operations_of(resource)) == 0
    (corpus,) = there.corpora()
    assert '"complete": true' in corpus.description
    assert "claim" not in corpus.description


def test_a_claim_of_a_process_that_has_ended_here_is_taken_over_at_once() -> None:
    clock = Now()
    there = RagState(
        Behaviour(), clock, lambda uri: {k: v for k, v in OBJECTS.items() if k.startswith(uri)}, lambda *_: None
    )
    api, me = MemoryApi(LOCATION, state=there), claimant("new", NOW)
    own = replace(ABOUT, claim={**asdict(me), "token": "old", "pid_started": "long ago"})
    create = create_corpus(LOCATION, NeededCorpus(own, PARAMETERS))
    (resource,) = simulated(Random(0), api, clock, [create], {}).values()
    began = clock.at
    simulated(Random(0), api, clock, [fill_corpora(LOCATION, print, Track((filling(resource),), 1400, me))], {})
    assert clock.at - began < 120


def test_a_claim_of_another_release_is_none() -> None:
    assert holder_of(replace(ABOUT, claim={"something": "else"})) is None
    assert holder_of(ABOUT) is None


def test_a_corpus_is_deleted_by_the_last_run_that_needs_it(tmp_path: Path) -> None:
    with VirtualClock() as clock:
        there = state({})
        site = CorpusClient(MemoryApi(LOCATION, state=there), Ledger(str(tmp_path)), Quota(60), clock)
        first, second, killed = elsewhere("first"), elsewhere("second"), claimant("killed", NOW)
        killed = replace(killed, machine=first.machine, pid_started="long ago")
        own = replace(ABOUT, keep=RUN, users=user_of(first) | user_of(killed))
        (resource,) = site.create([NeededCorpus(own, PARAMETERS)])
        assert isinstance(resource, str)
        assert site.register([resource], second) == [resource]
        assert site.end_use([resource], first) == [("second",)]
        assert there.seen.deleted == 0
        assert site.end_use([resource], second) == [()]
        assert there.seen.deleted == 1
        assert site.end_use([resource], second) == [()]
        (gone,) = site.register([resource], first)
        assert isinstance(gone, CallError)


@settings(max_examples=examples(100))
@given(
    models=st.lists(st.sampled_from("abcd"), min_size=1, max_size=8),
    concurrent=st.integers(1, 5),
    budget=st.integers(1, 20),
)
def test_each_model_has_a_budget_of_embeddings(models: list[str], concurrent: int, budget: int) -> None:
    fillings = [
        filling(f"corpus {number}", PARAMETERS.model_copy(update={"embedding_model": model}))
        for number, model in enumerate(models)
    ]
    dealt = tracks(fillings, ImportQuota(concurrent, budget), elsewhere("run"))
    assert sorted(load.resource for track in dealt for load in track.fillings) == sorted(f.resource for f in fillings)
    assert 1 <= len(dealt) <= concurrent
    for model in set(models):
        at_once = [
            track for track in dealt if any(load.needed.parameters.embedding_model == model for load in track.fillings)
        ]
        assert sum(track.embeddings_per_minute for track in at_once) <= budget
        assert min(track.embeddings_per_minute for track in at_once) >= 1
    if len(set(models)) == len(models) <= concurrent:
        assert {track.embeddings_per_minute for track in dealt} == {budget}


def test_an_import_without_progress_ends_with_what_to_do() -> None:
    operation = Operation("projects/p/ragCorpora/1/operations/2", done=False, progress=12, is_import=True)
    steps, waited = wait_for_end(operation.name), list[float]()

    def driven() -> None:
        answer: Any = None
        while True:
            (call,) = steps.send(answer)
            is_pause = call.service == PAUSE
            waited.extend([float(call.payload)] if is_pause else [])
            answer = [None if is_pause else operation]

    with pytest.raises(CallError, match=r"has been at 12% for 6\.0 hours; run again later .*`rankbeam corpora delete"):
        driven()
    assert STUCK_S <= sum(waited) < STUCK_S + 120
