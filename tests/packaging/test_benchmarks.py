"""The benchmark itself, on next to nothing: it makes its data, measures, compares and prints. No figure is tested."""

import ast
import hashlib
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.data import REPOSITORY
from support.emulators.fixtures import require

RUN = REPOSITORY / "tests" / "benchmarks" / "run.py"
PEERS = RUN.parent / "peers"
SIZE = "50x20"

# Of the reference generator: figures can be compared with those of others only while these bytes stay the same.
DIGESTS = {
    "run.trec": "fc80b7fccba5d7d9b4b0fa515e1c7e43917cb8eadffbead7be8b526b3ff09386",
    "qrels.trec": "e1c8bac9a9d1b762274336a52adf85aeeb34f75caa835e195fd500d9b7adffb0",
}

# As trec_eval prints, but the first query's P@5 is higher by a tenth.
WRONG_TREC_EVAL = f"""
import sys
sys.path.insert(0, {str(PEERS)!r})
import pytrec_eval
from values import TREC_MEASURES
from with_pytrec_eval import read_both
judged, retrieved = read_both(*sys.argv[-2:], parquet=False)
found = pytrec_eval.RelevanceEvaluator(judged, set(TREC_MEASURES)).evaluate(retrieved)
next(iter(found.values()))["P_5"] += 0.1
for query, values in found.items():
    for name, value in values.items():
        print(f"{{name:<22}}\\t{{query}}\\t{{value:6.4f}}")
print(f"{{'runid':<22}}\\tall\\tsynth")
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of the data, in a folder whose name has a space."""
    return tmp_path_factory.mktemp("benchmarks") / "made data"


def benchmark(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the benchmark once, without a warm-up."""
    command = [sys.executable, str(RUN), "--quick", "--sizes", SIZE, "--data", str(data), "--markdown", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def cells(printed: str) -> dict[str, list[list[str]]]:
    """The rows of all Markdown tables, without their headers, by title."""
    sections = (section.splitlines() for section in printed.split("### ")[1:])
    rows = {title: [line for line in lines if line.startswith("|")][2:] for title, *lines in sections}
    return {
        title: [[cell.strip() for cell in line.split("|")[1:-1]] for line in content] for title, content in rows.items()
    }


@pytest.mark.campaign
def test_it_measures_compares_and_prints_tables(data: Path) -> None:
    done = benchmark(data, "--tools", "pytrec_eval,trec_eval", "--trec-eval", "no-such-program")
    assert done.returncode == 0, done.stderr
    assert {
        name: hashlib.sha256((data / f"{SIZE}-grouped" / name).read_bytes()).hexdigest() for name in DIGESTS
    } == DIGESTS
    printed = cells(done.stdout)
    tools = {title: [row[0] for row in rows] for title, rows in printed.items()}
    assert tools[f"{SIZE}: 955 rows, from Parquet"] == ["rankbeam", "pytrec_eval"]
    assert tools[f"{SIZE}: 955 rows, from TREC text"] == ["rankbeam", "pytrec_eval", "trec_eval"]
    assert printed[f"{SIZE}: 955 rows, from TREC text"][2][-1] == "not installed: no program no-such-program"
    agreed = [
        [name, queries, differing, *words]
        for name, queries, differing, _, *words in printed[f"{SIZE}: values per query against rankbeam's from Parquet"]
    ]
    assert agreed == [
        ["rankbeam, TREC text", "50", "0", "–", "–"],
        ["pytrec_eval, Parquet", "49", "0", "1 not in the run left out", "–"],
        ["pytrec_eval, TREC text", "49", "0", "1 not in the run left out", "–"],
    ]
    assert [(row[0].removeprefix(SIZE), row[2]) for row in printed["rankbeam alone"]] == [
        ("", "955"),
        ("", "955"),
        (", shuffled rows", "955"),
        (", mixed white space", "955"),
        (", 10 runs", "9,550"),
    ]


@pytest.mark.campaign
def test_a_value_that_differs_is_told(data: Path, tmp_path: Path) -> None:
    script, program = tmp_path / "wrong.py", tmp_path / "trec_eval"
    script.write_text(WRONG_TREC_EVAL)
    # Not "#!" and Python's path: that may hold a space.
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(script))} "$@"\n')
    program.chmod(0o755)
    done = benchmark(data, "--tools", "trec_eval", "--trec-eval", str(program))
    assert done.returncode == 1
    assert done.stderr.endswith(f"{SIZE}: trec_eval, TREC text: 1 differ, such as q0\n")


def test_unknown_sizes_and_tools_are_refused(data: Path) -> None:
    assert benchmark(data, "--sizes", "XXL").returncode == 2
    assert "known are rankbeam, pytrec_eval" in benchmark(data, "--tools", "grep").stderr


@pytest.mark.campaign
def test_reading_and_writing_bigquery_is_measured_beside_beam() -> None:
    require()
    command = [sys.executable, str(RUN.parent / "warehouse.py"), "--rows=500", "--beam-rows=100", "--rounds=1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line.split("|")[1:-1] for line in done.stdout.splitlines() if line.startswith("|")]
    assert [name.strip() for name, *_ in rows if not name.startswith("---")] == [
        "reader",
        "rankbeam, read and joined",
        "ReadFromBigQuery, DIRECT_READ (Avro)",
        "ReadFromBigQuery, DIRECT_READ (Arrow)",
        "writer",
        "rankbeam, 500 rows",
        "WriteToBigQuery, FILE_LOADS (JSON), 100 rows",
        "WriteToBigQuery, FILE_LOADS (Avro), 100 rows",
    ]


@pytest.mark.campaign
def test_judging_long_contexts_is_measured_with_any_number_of_workers() -> None:
    command = [sys.executable, str(RUN.parent / "judged.py"), "--items=40", "--length=2000", "--workers=1,2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]]
    assert [(items, workers) for items, workers, *_ in rows] == [("40", "1"), ("40", "2")]
    assert rows[0][-1] == rows[1][-1]


def test_the_mutants_that_always_run_are_still_in_the_code() -> None:
    """Each replaces a text that its module holds once; a change to the module must change the mutant, too."""
    listed = tomllib.loads((REPOSITORY / "tests" / "benchmarks" / "mutants.toml").read_text(encoding="utf-8"))
    assert [entry["what"] for entry in listed["always"] if not (REPOSITORY / entry["test"]).exists()] == []
    texts = {entry["what"]: (REPOSITORY / entry["module"]).read_text(encoding="utf-8") for entry in listed["always"]}
    assert [entry["what"] for entry in listed["always"] if texts[entry["what"]].count(entry["old"]) != 1] == []


def test_the_mutants_that_change_nothing_are_still_in_the_code() -> None:
    """Each names a statement of its module, as Python prints it."""
    listed = tomllib.loads((REPOSITORY / "tests" / "benchmarks" / "mutants.toml").read_text(encoding="utf-8"))
    sources = {entry["module"]: (REPOSITORY / entry["module"]).read_text("utf-8") for entry in listed["equivalent"]}
    statements = {
        module: {ast.unparse(node).split("\n")[0] for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)}
        for module, source in sources.items()
    }
    gone = [
        entry for entry in listed["equivalent"] if entry["change"].split("  →  ")[0] not in statements[entry["module"]]
    ]
    assert gone == []
