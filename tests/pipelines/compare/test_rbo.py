"""Rank-biased overlap against its definition, the digits of other tools, and its laws."""

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from support.inputs import write

from rankbeam.pipelines.cli import main
from rankbeam.pipelines.compare.rbo import _Run, overlaps_of
from rankbeam.transforms.clients.formats import rows
from rankbeam.transforms.kernels.ranking.similarity import rank_biased_overlap
from rankbeam.transforms.records.errors import InputError

RBO_DIGITS = [
    ("abcdef", "badcfe", 0.9, 0.859878),
    ("abcde", "abxyz", 0.8, 0.6603733333333334),
    ("abcdefgh", "cab", 0.95, 0.9262499999999999),
    ("ab", "cdefab", 0.5, 0.016666666666666666),
]
"""Rankings, p and `rbo_ext` of the package rbo 0.1.3."""

rankings = st.lists(st.integers(0, 14), unique=True, max_size=12)


def by_definition(one: list[int], other: list[int], p: float) -> float:
    """Equation 32 of Webber et al. (2010), term by term."""
    if not one or not other:
        return float(one == other)
    short, long = sorted((one, other), key=len)
    s, l = len(short), len(long)  # noqa: E741  the names of the paper

    def shared(depth: int) -> int:
        return len(set(short[:depth]) & set(long[:depth]))

    total = sum(shared(d) / d * p**d for d in range(1, l + 1))
    total += sum(shared(s) * (d - s) / (s * d) * p**d for d in range(s + 1, l + 1))
    return (1 - p) / p * total + ((shared(l) - shared(s)) / l + shared(s) / s) * p**l


def ours(pairs: list[tuple[list[int], list[int]]], p: float) -> list[float]:
    shared = [
        (query, one.index(doc) + 1, other.index(doc) + 1)
        for query, (one, other) in enumerate(pairs)
        for doc in one
        if doc in other
    ]
    query, first, second = np.array(shared, np.int64).reshape(-1, 3).T
    lengths = np.array([[len(one), len(other)] for one, other in pairs]).reshape(-1, 2).T
    return rank_biased_overlap(query, first, second, *lengths, p=p).tolist()


@given(st.lists(st.tuples(rankings, rankings), min_size=1, max_size=5), st.floats(0.05, 0.99))
def test_values_are_those_of_the_definition(pairs: list[tuple[list[int], list[int]]], p: float) -> None:
    expected = [by_definition(one, other, p) for one, other in pairs]
    assert ours(pairs, p) == pytest.approx(expected, abs=1e-12)
    assert ours([(other, one) for one, other in pairs], p) == pytest.approx(expected, abs=1e-12)
    assert ours([(one, one) for one, _ in pairs], p) == pytest.approx([1.0] * len(pairs), abs=1e-12)


@pytest.mark.parametrize(("one", "other", "p", "value"), RBO_DIGITS)
def test_values_are_those_of_the_package_rbo(one: str, other: str, p: float, value: float) -> None:
    assert ours([([ord(c) for c in one], [ord(c) for c in other])], p) == pytest.approx([value], abs=1e-12)


def run_of(rankings_by_query: dict[str, str]) -> str:
    return "".join(
        f"{query} Q0 {doc} {rank} {-rank} t\n"
        for query, docs in rankings_by_query.items()
        for rank, doc in enumerate(docs, start=1)
    )


def test_runs_are_compared_query_by_query(tmp_path: Path) -> None:
    one = write(tmp_path / "one.run", run_of({"q1": "abc", "q2": "abc", "q3": "a"}))
    two = write(tmp_path / "two.run", run_of({"q2": "cba", "q1": "abc", "q4": "a", "q5": "b"}))
    overlaps = overlaps_of([str(one), str(two)], 0.9, None)
    (overlap,) = overlaps.runs
    assert list(overlap.values) == ["q2", "q1"]
    assert overlap.values["q1"] == pytest.approx(1.0)
    assert overlap.values["q2"] == pytest.approx(by_definition([1, 2, 3], [3, 2, 1], 0.9))
    assert overlaps.warnings == ["left out queries that one run lacks: 2 of two.run, 1 of one.run"]
    assert overlaps_of([str(one), str(two)], 0.9, 1).runs[0].values == pytest.approx({"q2": 0.0, "q1": 1.0})


def test_only_the_first_run_and_one_other_are_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [str(write(tmp_path / f"{number}.run", run_of({"q1": "ab"}))) for number in range(5)]
    alive = []

    def read_run(path: str) -> Iterator[pa.RecordBatch]:
        alive.append(sum(isinstance(thing, _Run) for thing in gc.get_objects()))
        yield from rows.read_run(path)

    monkeypatch.setattr("rankbeam.pipelines.compare.rbo.rows", SimpleNamespace(read_run=read_run))
    overlaps_of(paths, 0.9, None)
    assert alive == [0, 1, 2, 2, 2]


def test_a_document_that_stands_twice_has_its_better_rank(tmp_path: Path) -> None:
    one, two = (tmp_path / name for name in ("one.run", "two.run"))
    write(one, run_of({"q1": "aab"}))
    write(two, run_of({"q1": "ab"}))
    assert overlaps_of([str(one), str(two)], 0.9, None).runs[0].values == pytest.approx({"q1": 1.0})


def test_runs_without_a_common_query_are_refused(tmp_path: Path) -> None:
    one, two = (write(tmp_path / f"{name}.run", run_of({name: "ab"})) for name in ("q1", "q2"))
    with pytest.raises(InputError, match=r"q2\.run: shares no query with q1\.run: 'q2' here, 'q1' there"):
        overlaps_of([str(one), str(two)], 0.9, None)


def test_the_command_prints_a_table_and_json(tmp_path: Path) -> None:
    one = write(tmp_path / "one.run", run_of({"q1": "abc", "q2": "abc"}))
    two = write(tmp_path / "two.run", run_of({"q1": "abc", "q2": "bac"}))
    shown = CliRunner().invoke(main, ["rbo", str(one), str(two)])
    assert shown.exit_code == 0
    assert "RBO(p=0.9) with one.run" in shown.output
    (overlap,) = json.loads(CliRunner().invoke(main, ["rbo", str(one), str(two), "--format", "json"]).output)
    assert overlap["mean"] == pytest.approx((1 + by_definition([1, 2, 3], [2, 1, 3], 0.9)) / 2)
    assert CliRunner().invoke(main, ["rbo", str(one), str(two), "-p", "1"]).exit_code == 2


def test_missing_parts_of_a_run_are_named(tmp_path: Path) -> None:
    row = "q1 Q0 d1 1 1.0 a\n"
    one, two = write(tmp_path / "a.run", row), write(tmp_path / "b-00000-of-00002.run", row)
    shown = CliRunner().invoke(main, ["rbo", one, two])
    assert f"{two} is one of several files, and others are not read: b-00001-of-00002.run" in shown.stderr
