"""The end of a run: its result is shown whatever can no longer be written, and nothing foreign is replaced."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.campaigns import in_campaigns
from support.cli import rankbeam
from support.inputs import trec_qrels, trec_run, write

FAILED, REFUSED, MISSED = 1, 2, 3
FOREIGN = "was not made by rankbeam and would be overwritten"


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file grows further: as on a full disk, a write fails. (Python ignores the signal that comes with it.)"""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def experiment(tmp_path: Path) -> str:
    """One that misses a gate."""
    write(tmp_path / "qrels", trec_qrels([(f"q{n}", "d", 1.0) for n in range(20)]))
    write(tmp_path / "a.run", trec_run([(f"q{n}", "d" if n % 2 else "e", 1.0) for n in range(20)]))
    return write(
        tmp_path / "e.yaml",
        "name: e\ndataset: {qrels: qrels}\nmetrics: [RR]\noutput: {path: out}\n"
        "configurations: [{name: a, retriever: {type: run_file, path: a.run}}]\n"
        "gates: [{metric: RR, value: mean, at_least: 0.9}]\n",
    )


@pytest.mark.parametrize("form", ["table", *in_campaigns("json", "csv")])
def test_the_result_and_its_gates_are_shown_though_the_disk_is_full(experiment: str, tmp_path: Path, form: str) -> None:
    with files_of_at_most(32_768):
        outcome = rankbeam("evaluate", experiment, "--format", form)
    assert outcome.status == FAILED  # not that of the gate
    shown = {"table": "0.5000", "csv": "a,all,RR,0.5"}.get(form)
    assert json.loads(outcome.stdout)["leaderboard"] if shown is None else shown in outcome.stdout
    gates = outcome.stdout if form == "table" else outcome.stderr
    assert "MISSED" in gates
    warned = [line for line in outcome.stderr.splitlines() if line.startswith("warning: ")]
    assert [name in "".join(warned) for name in ("results.duckdb", "report.html")] == [True, True]
    last = outcome.stderr.splitlines()[-1]
    assert last.startswith("rankbeam: not written: DuckDB, report; ")
    assert "gate" in last
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert not {name for name in left if "report" in name or "duckdb" in name or name.startswith("rankbeam-")}
    again = rankbeam("report", str(tmp_path / "out"))
    assert (again.status, again.stdout) == (0, f"{tmp_path}/out/report.html\n")


@pytest.mark.long
def test_a_report_of_another_program_is_not_replaced_and_the_result_comes_first(
    experiment: str, tmp_path: Path
) -> None:
    page = tmp_path / "out" / "report.html"
    write(page, "<title>mine</title>\n")
    refused = rankbeam("evaluate", experiment)
    assert (refused.status, refused.stdout) == (REFUSED, "")
    assert f"rankbeam: {page}: {FOREIGN}" in refused.stderr
    assert not (tmp_path / "out" / "runs").exists()
    page.unlink()
    assert rankbeam("evaluate", experiment).status == MISSED
    replaced = rankbeam("evaluate", experiment)
    assert replaced.status == MISSED  # its own is replaced
    lines, words = replaced.stdout.splitlines(), ("0.5000", "MISSED", "DuckDB ", "report ")
    places = [next(i for i, line in enumerate(lines) if word in line) for word in words]
    assert places == sorted(places)
    write(page, "")
    refused = rankbeam("report", str(tmp_path / "out"))
    assert (refused.status, page.read_text()) == (REFUSED, "")
    assert FOREIGN in refused.stderr
    elsewhere = str(tmp_path / "other.html")
    assert rankbeam("report", str(tmp_path / "out"), "--output", elsewhere).status == 0
