"""`rankbeam.score` and `rankbeam.evaluate`: the numbers of the command line, from values of Python."""

import csv
import fcntl
import gc
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from ir_measures import RR, ScoredDoc, nDCG
from support.cli import rankbeam as command
from support.helpdesk import HELPDESK, few

import rankbeam
from rankbeam.testing import assert_gates

QRELS = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"b": 1, "d": 3.0}}
RUNS = {
    "first": {"q1": {"a": 0.9, "b": 0.8}, "q2": {"a": 3, "b": 2, "d": 1}},
    "second<b>": {"q1": {"b": 5.0, "c": 4.0, "a": 1.0}},
}
METRICS = ["nDCG@10", "RR"]


def lines(nested: dict[str, dict[str, float]], form: str) -> str:
    rows = [(query, document, value) for query, documents in nested.items() for document, value in documents.items()]
    return "".join(form.format(*row) for row in rows)


def table(nested: dict[str, dict[str, float]], number: str) -> pa.Table:
    rows = [
        {"query_id": query, "doc_id": document, number: float(value)}
        for query, documents in nested.items()
        for document, value in documents.items()
    ]
    return pa.Table.from_pylist(rows)


def with_categories(rows: pa.Table) -> pa.Table:
    """As Polars exports Categorical and Enum columns: dictionaries of string views."""
    encoded = rows["query_id"].combine_chunks().dictionary_encode()
    categories = pa.array(encoded.dictionary.to_pylist(), pa.string_view())  # pyarrow 24 cannot export a cast to views
    codes = encoded.indices.cast(pa.uint32())
    return rows.set_column(0, "query_id", pa.DictionaryArray.from_arrays(codes, categories))


class Frame:
    """As DataFrames of pandas and polars hand out their columns."""

    def __init__(self, columns: pa.Table) -> None:
        self._columns = columns

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._columns.__arrow_c_stream__(requested_schema)


class AsDict:
    """As ranx's Qrels and Run give their content."""

    def to_dict(self) -> dict[str, dict[str, int]]:
        return QRELS


def records(run: dict[str, dict[str, float]]) -> Iterator[ScoredDoc]:
    return (ScoredDoc(query, document, score) for query, docs in run.items() for document, score in docs.items())


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, list[Path]]:
    """The judgements and the runs as files of trec_eval."""
    qrels = tmp_path / "qrels.txt"
    qrels.write_text(lines(QRELS, "{0} 0 {1} {2}\n").replace("3.0", "3"))
    runs = []
    for name, run in zip(("first", "second"), RUNS.values(), strict=True):
        runs.append(tmp_path / f"{name}.run")
        runs[-1].write_text(lines(run, "{0} Q0 {1} 0 {2} tag\n"))
    return qrels, runs


def values(result: rankbeam.Result) -> list[tuple[str, str, float]]:
    """The values of all runs, whatever these are called; and their means, as those of the query "all"."""
    rows = [(row["query_id"], row["metric"], row["value"]) for row in result.per_query().to_pylist()]
    means = [("all", metric, mean) for metric in METRICS for mean in result.leaderboard()[metric].to_pylist()]
    return sorted([*rows, *means])


@pytest.mark.long
def test_scores_are_those_of_the_command_line_whatever_the_inputs_are(
    paths: tuple[Path, list[Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    qrels, runs = paths
    outcome = command("score", str(qrels), *map(str, runs), "--format", "csv", "-q", *(f"-m{name}" for name in METRICS))
    rows = csv.DictReader(outcome.stdout.splitlines())
    expected = sorted((row["query_id"], row["metric"], float(row["value"])) for row in rows)
    assert len(expected) == 12
    capsys.readouterr()
    mixed = {"first": Frame(table(RUNS["first"], "score")), "x": runs[1]}
    for result in (
        rankbeam.score(QRELS, RUNS, METRICS),
        rankbeam.score(table(QRELS, "grade"), {name: table(run, "score") for name, run in RUNS.items()}, METRICS),
        rankbeam.score(Frame(with_categories(table(QRELS, "rel"))), mixed, METRICS),
        rankbeam.score(qrels, runs, METRICS),
        rankbeam.score(AsDict(), {name: list(records(run)) for name, run in RUNS.items()}, [nDCG @ 10, RR]),
    ):
        assert values(result) == expected
        assert result.leaderboard().column_names[:4] == ["configuration", "nDCG@10", "nDCG@10 low", "nDCG@10 high"]
        assert result.leaderboard()["configuration"][0].as_py() == "first"
        assert result.comparisons()["baseline"].unique().to_pylist() == ["first"]
    assert capsys.readouterr() == ("", "")


@pytest.mark.long
def test_grades_that_a_metric_lowers_are_a_warning(tmp_path: Path) -> None:
    for metric, number in (("ERR(max_rel=2)@5", 1), ("ERR", 0)):
        warnings = rankbeam.score(QRELS, RUNS, ["nDCG@10", metric], output=tmp_path / str(number)).warnings
        assert (
            sum(text.startswith("1 judgement has a grade above 2, which ERR(max_rel=2)@5") for text in warnings)
            == number
        )


def test_a_data_frame_is_a_table() -> None:
    pytest.importorskip("pandas", reason="pandas is not installed; rankbeam does not need it")
    qrels, run = table(QRELS, "grade").to_pandas(), table(RUNS["first"], "score").to_pandas()
    result = rankbeam.score(qrels, {"first": run}, "RR")
    assert list(result.leaderboard().to_pandas()["RR"]) == [0.75]


@pytest.mark.long
def test_results_are_kept_where_a_folder_is_named_and_else_as_long_as_the_result(tmp_path: Path) -> None:
    saved = rankbeam.score(QRELS, RUNS, output=tmp_path / "out", run_id="one")
    assert (saved.output, saved.run_id, saved.state) == (str(tmp_path / "out"), "one", "done")
    assert (tmp_path / "out" / "results.duckdb").exists()
    assert Path(saved.report()).read_text(encoding="utf-8").startswith("<!")
    assert saved.report(tmp_path / "own.html") == str(tmp_path / "own.html")
    result = rankbeam.score(QRELS, RUNS, "RR")
    folder, board = Path(result.output), result.leaderboard()
    assert folder.is_dir()
    del result
    gc.collect()
    assert not folder.exists()
    assert board.num_rows == 2


@pytest.mark.long
def test_a_result_never_has_the_values_of_a_later_run_that_replaced_it(tmp_path: Path) -> None:
    first, second = (
        rankbeam.score(QRELS, {name: RUNS[name]}, "RR", output=tmp_path, run_id="trial", replicates=0) for name in RUNS
    )
    assert second.leaderboard()["configuration"].to_pylist() == list(RUNS)[1:]
    for read in (first.leaderboard, first.per_query, first.report):
        with pytest.raises(rankbeam.InputError, match="a later run has replaced the run trial"):
            read()


@pytest.mark.long
def test_a_run_that_another_process_writes_is_refused(tmp_path: Path) -> None:
    with (tmp_path / ".one.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(rankbeam.InputError, match="another process is writing the run one; wait for it"):
            rankbeam.score(QRELS, RUNS, "RR", output=tmp_path, run_id="one", replicates=0)
    rankbeam.score(QRELS, RUNS, "RR", output=tmp_path, run_id="one", replicates=0)
    assert not (tmp_path / ".one.lock").exists()


def test_the_table_of_a_notebook_is_escaped() -> None:
    shown = rankbeam.score(QRELS, RUNS, "RR")._repr_html_()
    assert "second&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert "<td>0.7500" in shown


@pytest.mark.parametrize(
    ("qrels", "runs", "options", "message"),
    [
        ({1: {"a": 1}}, RUNS, {}, "qrels: the query 1 is int; use str"),
        ({"q1": {"a": "1"}}, RUNS, {}, "qrels: query 'q1': document 'a': the grade '1' is str; use int or float"),
        ({"q1": {"a": True}}, RUNS, {}, "the grade True is bool"),
        ([3], RUNS, {}, "qrels: an item is int; it needs query_id, doc_id, relevance"),
        ({"a"}, RUNS, {}, "qrels: is set; give a path"),
        ({"q1": ["a"]}, RUNS, {}, "qrels: query 'q1' has list; give {query: {document: grade}}"),
        (QRELS, RUNS["first"], {}, "a name is missing"),
        (QRELS, {}, {}, "runs: none given"),
        (QRELS, 7, {}, "runs are int"),
        (QRELS, {"a": 7}, {}, "run 'a': is int; give a path"),
        (QRELS, {"a": {"q1": {"a": math.nan}}}, {}, "run 'a':1: "),
        (QRELS, {"a": pa.table({"query_id": ["q1"], "score": [1.0]})}, {}, "run 'a': no column for doc_id"),
        (QRELS, {"a": "nowhere.run"}, {}, "nowhere.run"),
        (QRELS, RUNS, {"metrics": "nDGC@10"}, "unknown metric 'nDGC'"),
        (QRELS, RUNS, {"replicate": 5}, "replicate: unknown key; did you mean 'replicates'?"),
        (QRELS, RUNS, {"replicates": -1}, "replicates: must be at least 0, found -1"),
        (QRELS, RUNS, {"metrics": [3]}, "metrics[0]: must be a text, found 3"),
        (QRELS, {"": RUNS["first"]}, {}, "runs: a name is empty"),
        (QRELS, RUNS, {"run_id": 3}, "run id 3 is int; use str"),
        (QRELS, RUNS, {"output": ""}, "output is empty; name a folder for the results, such as output='out'"),
        (QRELS, RUNS, {"output": 5}, "5 is not text; give a path as str or Path"),
        (QRELS, RUNS, {"output": b"out"}, "b'out' is not text; give a path as str or Path"),
    ],
)
def test_input_of_score_that_cannot_be_used_is_refused(qrels: Any, runs: Any, options: Any, message: str) -> None:
    with pytest.raises(rankbeam.InputError) as refused:
        rankbeam.score(qrels, runs, **options)
    assert message in str(refused.value)


def experiment(paths: tuple[Path, list[Path]]) -> dict[str, Any]:
    qrels, runs = paths
    return {
        "name": "own",
        "dataset": {"qrels": qrels},
        "configurations": [{"name": path.stem, "retriever": {"type": "run_file", "path": path}} for path in runs],
        "metrics": ["P@1"],
    }


@pytest.mark.long
def test_an_experiment_is_a_dict_or_a_file_whose_keys_can_be_replaced(
    paths: tuple[Path, list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from_dict = rankbeam.evaluate(experiment(paths), metrics=np.array(["RR"]), statistics={"seed": np.int64(0)})
    file = tmp_path / "own.yaml"
    configurations = "".join(
        f"- name: {name}\n  retriever: {{type: run_file, path: {name}.run}}\n" for name in ("first", "second")
    )
    head = "name: own\ndataset: {qrels: qrels.txt}\nmetrics: [RR]\noutput: {path: out}\n"
    file.write_text(f"{head}configurations:\n{configurations}")
    from_file = rankbeam.evaluate(file)
    replaced = rankbeam.evaluate(file, output=tmp_path / "other", metrics=["P@1"], run_id="two")
    assert from_dict.leaderboard() == from_file.leaderboard()
    assert (from_dict.experiment, from_file.output) == ("own", str(tmp_path / "out"))
    assert replaced.leaderboard().column_names[1] == "P@1"
    assert (replaced.output, replaced.run_id) == (str(tmp_path / "other"), "two")
    assert (from_file.answers().num_rows, from_file.verdicts().num_rows) == (0, 0)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"metrics": ["nDGC@10"]}, "experiment: metrics[0]: "),
        ({"metrik": []}, "experiment: metrik"),
        ({"metrics": {1, 2}}, "experiment: "),
        ({"name": object()}, "is object; an experiment contains dicts"),
        ({"dataset": {"queries": pa.table({"query_id": ["q"] * 99})}}, "Booleans; write the table to a file, and name"),
        ({"metrics": [len]}, "<built-in function len> is builtin_function_or_method; an experiment contains dicts"),
        ({"output": "out"}, "experiment: output: "),
        ({"beam_options": ["--runner=FlinkRunner"]}, "use `rankbeam evaluate` for other runners"),
    ],
)
def test_an_experiment_that_cannot_be_used_is_refused(
    paths: tuple[Path, list[Path]], changed: dict[str, Any], message: str
) -> None:
    output = changed.pop("output", None)
    content = experiment(paths) | ({} if output is None else {"output": output})
    with pytest.raises(rankbeam.InputError) as refused:
        rankbeam.evaluate(content, **changed)
    assert message in str(refused.value)


@pytest.mark.long
def test_an_experiment_that_calls_services_needs_a_folder_for_its_ledger(tmp_path: Path) -> None:
    value, place = yaml.safe_load((HELPDESK / "answers.yaml").read_text(encoding="utf-8")), few(tmp_path, 8)
    del value["output"]
    value |= {"configurations": value["configurations"][:1], "metrics": ["Faithfulness"]}
    value["dataset"] = {
        key: str(place / path) if isinstance(path, str) and "." in path else path
        for key, path in value["dataset"].items()
    }
    with pytest.raises(rankbeam.InputError, match="output is missing; name a folder for the ledger"):
        rankbeam.evaluate(value)
    result = rankbeam.evaluate(value, output=tmp_path / "out")
    assert (result.answers().num_rows, result.verdicts()["step"][0].as_py()) == (8, "support")


def test_an_experiment_is_a_path_or_a_dict() -> None:
    with pytest.raises(rankbeam.InputError, match="an experiment is int; give the path"):
        rankbeam.evaluate(7)


def test_gates_of_a_result_are_asserted() -> None:
    result = rankbeam.score(QRELS, {"one": RUNS["first"]}, ["RR"])
    assert_gates(result, [{"metric": "RR", "at_least": 0.7}])
    with pytest.raises(AssertionError, match=r"1 of 1 gate check missed\n(.*\n)*MISSED +one"):
        assert_gates(result, [{"metric": "RR", "at_least": 0.8}])
    with pytest.raises(rankbeam.InputErrors, match="unknown key; did you mean 'metric'"):
        assert_gates(result, [{"metrik": "RR", "at_least": 0.8}])
    with pytest.raises(rankbeam.InputErrors, match=r"gates: must be a list, found \{"):
        assert_gates(result, {"metric": "RR", "at_least": 0.8})  # type: ignore[arg-type]
    with pytest.raises(rankbeam.InputErrors, match="gates: there are no gates"):
        assert_gates(result)


@pytest.mark.long
def test_gates_on_differences_compare_with_another_result() -> None:
    better, worse = (rankbeam.score(QRELS, {"one": RUNS[name]}, ["RR"]) for name in ("first", "second<b>"))
    gates = [{"metric": "RR", "value": "difference", "at_least": 0.0}]
    assert_gates(better, gates, baseline=worse)
    with pytest.raises(AssertionError, match="MISSED"):
        assert_gates(worse, gates, baseline=better)
