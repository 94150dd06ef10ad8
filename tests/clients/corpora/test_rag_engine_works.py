"""Works on corpora of RAG Engine, on a virtual clock: long imports, lost answers, failures inside of operations."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.rag_memory import MemoryApi, state, unavailable
from support.standins.rag_state import RagState

from rankbeam.transforms.clients.corpora.rag_engine.claims import claimant
from rankbeam.transforms.clients.corpora.rag_engine.corpus_client import CorpusClient
from rankbeam.transforms.clients.corpora.rag_engine.data_api import ListedCorpus
from rankbeam.transforms.clients.corpora.rag_engine.description import CorpusDescription, parse_description
from rankbeam.transforms.clients.corpora.rag_engine.importing import FilledCorpus, UnfilledCorpus, tracks
from rankbeam.transforms.clients.corpora.rag_engine.parameters import RagEngineCorpus
from rankbeam.transforms.clients.corpora.rag_engine.staging import StagedFiles, StagedFolder
from rankbeam.transforms.clients.corpora.rag_engine.work import NeededCorpus, request
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.ledger.leases.lease import Holder
from rankbeam.transforms.clients.virtual_clock import VirtualClock
from rankbeam.transforms.records.calls.quota import ImportQuota, Quota
from rankbeam.transforms.records.errors import CallError, FailureKind

LOCATION = "projects/p/locations/us-central1"
PARAMETERS = RagEngineCorpus(location=LOCATION, staging="gs://bucket/r", embedding_model="text-embedding-005")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FILES = 250
ME = claimant("run", NOW)


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def staged(files: int = FILES) -> StagedFiles:
    names = [f"{number}.txt" for number in range(files)]
    return StagedFiles("gs://bucket/r", (StagedFolder("a", tuple(names[::2])), StagedFolder("b", tuple(names[1::2]))))


def objects(files: int = FILES) -> dict[str, str]:
    return {
        f"{staged().uri(folder)}/{name}": f"text {name}" for folder in staged(files).folders for name in folder.names
    }


def own(number: int) -> CorpusDescription:
    return CorpusDescription(f"{number:016x}" * 2, f"kb{number}", "d", {}, "run", NOW.isoformat())


def claiming(about: CorpusDescription, me: Holder = ME) -> CorpusDescription:
    return replace(about, claim=asdict(me))


def needed_corpora(*numbers: int) -> list[NeededCorpus]:
    return [NeededCorpus(claiming(own(number)), PARAMETERS) for number in numbers]


def corpus_client(api: MemoryApi, folder: Path, clock: VirtualClock) -> CorpusClient:
    return CorpusClient(api, Ledger(str(folder)), Quota(60), clock)


def filled(
    api: MemoryApi, folder: Path, clock: VirtualClock, resources: Sequence[str], **changes: Any
) -> list[FilledCorpus]:
    fillings = [
        UnfilledCorpus(replace(needed, **{"most_failures": 5, **changes}), resource, staged())
        for needed, resource in zip(needed_corpora(*range(len(resources))), resources, strict=True)
    ]
    dealt = tracks(fillings, ImportQuota(), ME)
    return corpus_client(api, folder, clock).fill(dealt, print, print)


def counts_by_name(there: RagState) -> Counter[str]:
    return Counter(corpus.display_name for corpus in there.corpora())


@pytest.mark.long
def test_a_long_import_is_waited_for_with_few_polls_that_may_fail(tmp_path: Path, clock: VirtualClock) -> None:
    there = state(objects(), seconds_per_file=2.5)
    api = MemoryApi(LOCATION, state=there, fail=unavailable("poll", every=2))
    (resource,) = corpus_client(api, tmp_path, clock).create(needed_corpora(0))
    (result,) = filled(api, tmp_path, clock, [str(resource)])

    polls = [at for name, at in api.requests if name == "poll"]
    assert (result.error, result.imported, result.about.complete) == (None, FILES, True)
    assert polls[-1] - polls[0] > 600
    assert len(polls) < 50


@pytest.mark.parametrize("lost", [1, 2])
def test_a_create_whose_answer_is_lost_makes_no_second_corpus(lost: int, tmp_path: Path, clock: VirtualClock) -> None:
    there = state({}, lost_creates=lost, create_s=20.0)
    api = MemoryApi(LOCATION, state=there)
    names = corpus_client(api, tmp_path, clock).create(needed_corpora(0, 1, 2))

    assert all(isinstance(name, str) for name in names)
    assert [name for name, _ in api.requests].count("create") == 3
    assert there.seen.created == 3


@pytest.mark.long
@pytest.mark.parametrize("shows_operations", [True, False])
def test_files_that_are_skipped_or_fail_are_imported_again_and_no_other(
    shows_operations: bool, tmp_path: Path, clock: VirtualClock
) -> None:
    there = state(
        objects(),
        seconds_per_file=0.01,
        failing=0.05,
        skipped=0.05,
        failed_operations=1,
        shows_operations=shows_operations,
    )
    api = MemoryApi(LOCATION, state=there)
    names = corpus_client(api, tmp_path, clock).create(needed_corpora(0, 1, 2, 3))
    results = filled(api, tmp_path, clock, [str(name) for name in names])

    assert [(result.error, result.imported, result.failed) for result in results] == [(None, FILES, {})] * 4
    assert {times for files in there.seen.imports.values() for times in files.values()} == {1}
    assert there.seen.most_imports == 3
    assert there.seen.most_embeddings <= 1400


def test_a_file_that_always_fails_is_named_and_the_corpus_is_complete_without_it(
    tmp_path: Path, clock: VirtualClock
) -> None:
    api = MemoryApi(LOCATION, state=state(objects(), broken="17.txt"))
    (resource,) = corpus_client(api, tmp_path, clock).create(needed_corpora(0))
    (result,) = filled(api, tmp_path, clock, [str(resource)])
    (beyond,) = filled(api, tmp_path, clock, [str(resource)], most_failures=0, imports=("a", "b", "c"))

    assert sorted(result.failed) == ["117.txt", "17.txt", "217.txt"]
    assert (result.about.files, result.about.failed) == (FILES - 3, 3)
    assert len(beyond.failed) == 3
    assert beyond.imported == 0


@pytest.mark.long
def test_a_corpus_that_is_deleted_meanwhile_fails_alone(tmp_path: Path, clock: VirtualClock) -> None:
    there = state(objects(), seconds_per_file=1.0)
    api = MemoryApi(LOCATION, state=there)
    names = [str(name) for name in corpus_client(api, tmp_path, clock).create(needed_corpora(0, 1))]

    def delete(name: str, number: int) -> None:
        if (name, number) == ("poll", 6):
            there.delete(names[0])

    gone, there_is = filled(replace(api, fail=delete), tmp_path, clock, names)
    assert isinstance(gone.error, CallError)
    assert gone.error.kind is FailureKind.NOT_FOUND
    assert there_is.error is None


def test_a_model_that_does_not_exist_is_refused_in_the_words_of_the_service(
    tmp_path: Path, clock: VirtualClock
) -> None:
    unknown = replace(needed_corpora(0)[0], parameters=PARAMETERS.model_copy(update={"embedding_model": "x"}))
    (error,) = corpus_client(MemoryApi(LOCATION, state=state({})), tmp_path, clock).create([unknown])
    assert isinstance(error, CallError)
    assert (error.kind, error.message) == (FailureKind.INVALID, "The embedding model x does not exist.")


@pytest.mark.long
def test_imports_of_a_run_that_was_killed_are_waited_for_before_others_begin(
    tmp_path: Path, clock: VirtualClock
) -> None:
    there = state(objects(), seconds_per_file=1.0)
    api = MemoryApi(LOCATION, state=there)
    here = corpus_client(api, tmp_path, clock)
    names = here.create(needed_corpora(0, 1))
    operations = here._done(begun, names)  # as a run that is killed now
    corpora = here.find(needed_corpora(0, 1))

    assert {corpus.resource for corpus in corpora} == set(names)
    assert max(at for name, at in api.requests if name == "poll") >= FILES
    assert len(operations) == 2
    assert {len(files) for files in there.seen.imports.values()} == {FILES}


def test_nothing_that_rankbeam_did_not_make_is_taken_for_its_own() -> None:
    mine = ListedCorpus("n", own(7).display_name, own(7).description(), "")
    others = [
        replace(mine, display_name="my corpus"),
        replace(mine, display_name="rankbeam/v1/ffffffffffffffff"),
        replace(mine, description="notes"),
        replace(mine, description='{"rankbeam": 1}'),
        replace(mine, description=own(7).description().replace('"rankbeam": 1, ', "")),
    ]
    assert parse_description(mine) == own(7)
    assert [parse_description(corpus) for corpus in others] == [None] * len(others)


def test_a_corpus_is_kept_from_its_last_use_on() -> None:
    corpus = own(1).used("14d", NOW)
    assert not corpus.is_expired(NOW + timedelta(days=13))
    assert corpus.is_expired(NOW + timedelta(days=14))
    assert corpus.used("14d", NOW + timedelta(days=10)).expires > corpus.expires
    assert corpus.used("run", NOW) == corpus


def begun(corpus: str) -> Any:
    """Begin an import, and do not wait for it."""
    config = {
        **PARAMETERS.import_config(),
        "max_embedding_requests_per_min": 700,
        "gcs_source": {"uris": [staged().uri(folder) for folder in staged().folders]},
        "import_result_gcs_sink": {"output_uri_prefix": "gs://bucket/result"},
    }
    return (yield [request("import", corpus=corpus, config=config)])
