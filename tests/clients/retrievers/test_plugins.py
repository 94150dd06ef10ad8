"""Retrievers of other packages: found by their entry point, run, and their failures kept."""

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.inputs import json_texts, trec_qrels, write

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run.evaluate import new_run, run
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.plug_ins import entry_points_of
from rankbeam.transforms.records.queries import Query, Ranking
from rankbeam.transforms.retrieve.local import retrieve

QRELS = [(f"q{number}", "good", 1.0) for number in range(1, 6)]
Install = Callable[[str, str], None]

PLUGIN = """
    from rankbeam import CallError, FailureKind, Query, Ranking, RetrieverParameters


    class Echo(RetrieverParameters):
        failing: tuple[str, ...] = ()
        best: tuple[str, ...] = ()
        empty: tuple[str, ...] = ()
        model: str | None = None

        def inputs(self) -> dict[str, str]:
            return {} if self.model is None else {"model": self.model}

        def open(self, corpus: str | None) -> "EchoRetriever":
            return EchoRetriever(self)


    class EchoRetriever:
        def __init__(self, parameters: Echo) -> None:
            self.parameters = parameters

        def retrieve(self, query: Query, top_k: int) -> Ranking:
            if query.query_id in self.parameters.failing:
                raise CallError(FailureKind.QUOTA, f"no quota left for {query.text}", attempts=4)
            if query.query_id in self.parameters.empty:
                return Ranking((), ())
            found = ("good", "bad") if query.query_id in self.parameters.best else ("bad", "good")
            return Ranking(found, (0.5, 0.5), ("a text", "another"))

        def close(self) -> None:
            pass
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package that registers a retriever; its name differs each time, as imports are kept."""
    names = itertools.count()

    def make(target: str, code: str) -> None:
        module = f"plugin_{abs(hash(tmp_path))}_{next(names)}"
        folder = tmp_path / "site"
        write(folder / f"{module}.py", dedent(code))
        info = folder / f"{module}-1.0.dist-info"
        write(info / "METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        write(info / "entry_points.txt", f"[rankbeam.retrievers]\necho = {module}:{target}\n")
        monkeypatch.syspath_prepend(str(folder))
        entry_points_of.cache_clear()

    before = set(sys.modules)
    yield make
    entry_points_of.cache_clear()
    for name in {name for name in set(sys.modules) - before if name.startswith("plugin_")}:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def _fresh_registry() -> Iterator[None]:
    yield
    entry_points_of.cache_clear()


def evaluated(folder: Path, *retrievers: str) -> Results:
    """The results of an experiment with some retrievers, each as YAML."""
    write(folder / "qrels", trec_qrels(QRELS))
    write(folder / "queries.jsonl", json_texts([(query, f"text of {query}") for query, _, _ in QRELS]))
    write(folder / "run", "".join(f"{query} Q0 good 1 1.0 t\n" for query, _, _ in QRELS))
    text = "name: plugins\ndataset: {qrels: qrels, queries: queries.jsonl}\nconfigurations:\n"
    for place, retriever in enumerate(retrievers):
        text += f"  - {{name: c{place}, retriever: {retriever}}}\n"
    text += "metrics: [RR, P@1, NumRel]\noutput: {path: out}\n"
    experiment = load_experiment(write(folder / "e.yaml", text))
    finished = run(experiment, new_run(experiment, "r1"), pipeline_options([]))
    return Results(finished.output, "r1")


def test_failed_calls_are_kept_and_bound_the_mean(tmp_path: Path, install: Install) -> None:
    install("Echo", PLUGIN)
    results = evaluated(tmp_path, "{type: echo, failing: [q2, q5], best: [q1], empty: [q3]}", "{type: echo}")
    config_id = results.configurations[0]["config_id"]

    columns = ("query_id", "stage", "kind", "attempts", "message", "config_id")
    failures = sorted(results.table("failures").select(columns).to_pylist(), key=lambda row: row["query_id"])
    assert failures == [
        dict(
            zip(columns, (query, "retrieve", "quota", 4, f"no quota left for text of {query}", config_id), strict=True)
        )
        for query in ("q2", "q5")
    ]
    assert results.run["failures"] == 2

    rows = {row["query_id"]: (row["status"], row["metrics"].get("RR")) for row in results.query_metrics(config_id)}
    assert rows == {
        "q1": ("ok", 1.0), "q2": ("failed", None), "q3": ("empty", 0.0), "q4": ("ok", 0.5), "q5": ("failed", None),
    }  # fmt: skip

    reciprocal = results.means[config_id, "all", "RR"]
    assert (reciprocal.queries, reciprocal.empty, reciprocal.failed) == (3, 1, 2)
    assert reciprocal.mean == pytest.approx(1.5 / 3)
    assert reciprocal.lowest == pytest.approx(1.5 / 5)
    assert reciprocal.highest == pytest.approx((1.5 + 2) / 5)
    unbounded = results.means[config_id, "all", "NumRel"]
    assert (unbounded.mean, unbounded.highest) == (1.0, None)


@pytest.mark.long
def test_comparisons_are_over_the_queries_that_both_have(tmp_path: Path, install: Install) -> None:
    install("Echo", PLUGIN)
    results = evaluated(tmp_path, "{type: echo}", "{type: echo, failing: [q2], best: [q1, q3]}")
    (row,) = [row for row in results.table("comparisons").to_pylist() if row["metric"] == "RR"]
    assert (row["queries"], row["wins"], row["ties"], row["losses"]) == (4, 2, 2, 0)
    assert row["difference"] == pytest.approx(0.25)


def test_the_order_of_a_retriever_counts_and_its_texts_are_kept(tmp_path: Path, install: Install) -> None:
    install("Echo", PLUGIN)
    results = evaluated(tmp_path, "{type: echo, best: [q1]}")
    documents = {row["query_id"]: row["documents"] for row in results.table("rankings").to_pylist()}
    assert documents["q1"] == [
        {"rank": 1, "doc_id": "good", "score": 0.5, "grade": 1.0, "text": "a text", "grade_source": None},
        {"rank": 2, "doc_id": "bad", "score": 0.5, "grade": None, "text": "another", "grade_source": None},
    ]
    assert [item["doc_id"] for item in documents["q2"]] == ["bad", "good"]


def test_a_configuration_whose_calls_all_fail_has_no_mean(tmp_path: Path, install: Install) -> None:
    install("Echo", PLUGIN)
    results = evaluated(tmp_path, "{type: echo, failing: [q1, q2, q3, q4, q5]}")
    row = results.means[results.configurations[0]["config_id"], "all", "P@1"]
    assert (row.mean, row.queries, row.failed) == (None, 0, 5)
    assert (row.lowest, row.highest) == (0.0, 1.0)


def test_files_of_a_retriever_may_have_any_format(tmp_path: Path, install: Install) -> None:
    install("Echo", PLUGIN)
    write(tmp_path / "model.bin", b"\x00\x01\x02 any bytes")
    results = evaluated(tmp_path, f"{{type: echo, model: {tmp_path}/model.bin}}")
    assert results.run["state"] == "done"


def test_files_of_a_retriever_must_exist(tmp_path: Path, install: Install) -> None:
    install("Echo", PLUGIN)
    with pytest.raises(
        InputError, match=r"e\.yaml:4: configurations\[0\]\.retriever\.model: .*none\.bin: no such file"
    ):
        evaluated(tmp_path, f"{{type: echo, model: {tmp_path}/none.bin}}")


def test_parameters_of_a_plugin_are_checked(tmp_path: Path, install: Install) -> None:
    install("Echo", PLUGIN)
    with pytest.raises(InputError, match=r"e\.yaml:4: .*faling: unknown key; did you mean 'failing'"):
        evaluated(tmp_path, "{type: echo, faling: [q1]}")


@pytest.mark.parametrize("code", ["class Echo: ...", "def Echo(): ...", "Echo = 1"])
def test_what_is_no_retriever_parameters_is_refused(install: Install, code: str) -> None:
    install("Echo", code)
    with pytest.raises(InputError, match=r"'echo' of the package plugin_\w+: plugin_\w+:Echo is not a subclass"):
        RETRIEVERS.load("echo")


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("Echo", "import no_such_module", "no_such_module"),
        ("Missing", PLUGIN, "Missing"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_refused(install: Install, target: str, code: str, words: str) -> None:
    install(target, code)
    with pytest.raises(InputError, match=rf"'echo' of the package plugin_\w+ cannot be imported: .*{words}"):
        RETRIEVERS.load("echo")


REMOTE = """
    from rankbeam import Quota, Ranking, RemoteRetriever, Reply


    class Shelf(RemoteRetriever):
        wrong: str

        default_quota = Quota(requests_per_minute=600_000)

        def scope(self) -> str:
            return "shelf"

        async def connect(self) -> "Connection":
            return Connection(self.wrong)

        def read(self, answer: str) -> Ranking:
            wrong = {"nothing": None, "numbers": Ranking((1,), (1.0,)), "uneven": Ranking(("good",), ())}
            return wrong[self.wrong]


    class Connection:
        def __init__(self, wrong: str) -> None:
            self.wrong = wrong

        async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:
            replies = {"no reply": "{}", "tokens": Reply("{}", tokens=5)}
            return replies.get(self.wrong, Reply("{}"))

        async def close(self) -> None:
            pass
"""


@pytest.mark.long
def test_what_a_remote_retriever_returns_fails_its_calls_alone(tmp_path: Path, install: Install) -> None:
    install("Shelf", REMOTE)
    reads, calls = ("nothing", "numbers", "uneven"), ("no reply", "tokens")
    results = evaluated(
        tmp_path, "{type: run_file, path: run}", *(f"{{type: echo, wrong: {how}}}" for how in reads + calls)
    )
    assert results.configurations[0]["name"] == "c0"
    names = {row["config_id"]: row["name"] for row in results.configurations}
    messages = {(names[row["config_id"]], row["kind"], row["message"]) for row in results.rows("failures")}
    (module,) = {message.partition(".")[0] for _, _, message in messages}
    by_read = f"{module}.Shelf.read must return a Ranking with a score for each id, a str"
    by_call = f"{module}.Connection.call must return a Reply, whose tokens are Tokens"
    expected = [by_read] * len(reads) + [by_call] * len(calls)
    assert messages == {(f"c{place}", "malformed", message) for place, message in enumerate(expected, start=1)}
    assert results.means[results.configurations[0]["config_id"], "all", "RR"].mean == 1.0


class Returning:
    def __init__(self, ranking: Any) -> None:
        self.ranking = ranking

    def retrieve(self, query: Query, top_k: int) -> Any:  # noqa: ARG002
        if isinstance(self.ranking, Exception):
            raise self.ranking
        return self.ranking


@pytest.mark.parametrize(
    ("ranking", "problem"),
    [
        (None, "must return a Ranking, and returned NoneType"),
        (Ranking((1, 2), (1.0, 0.5)), "must return tuples: ids of type str, .*"),  # type: ignore[arg-type]
        (Ranking(("a", "b"), (1.0,)), "must return tuples: .*: the ranking of query 'q1' does not have one score .*"),
        (Ranking((name for name in "ab"), (1.0, 0.5)), "must return tuples: .*"),  # type: ignore[arg-type]
        (Ranking(np.array(["a"]), np.array([1.0])), "must return tuples: .*"),  # type: ignore[arg-type]
        (KeyError("a"), r"failed: KeyError: 'a' \(.*test_plugins.py, line \d+\); correct it there"),
    ],
)
def test_what_a_retriever_returns_is_refused_by_its_name(ranking: Any, problem: str) -> None:
    queries = pa.RecordBatch.from_pylist([{"query_id": "q1", "text": "?"}])
    with pytest.raises(InputError, match=rf"^{__name__}\.Returning\.retrieve {problem}$"):
        retrieve(Returning(ranking), queries, 10)  # type: ignore[arg-type]


def test_our_own_retrievers_are_registered() -> None:
    assert {"bm25", "run_file"} <= set(RETRIEVERS.types)
    with pytest.raises(InputError, match="unknown retriever type 'bm_25'; did you mean 'bm25'"):
        RETRIEVERS.load("bm_25")
