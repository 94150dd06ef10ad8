"""Inputs at the edge of what is allowed, and one step beyond it, through the command line: `rankbeam score`."""

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.campaigns import in_campaigns
from support.hostile import (
    METRICS,
    NAMES,
    TOLERANCE,
    Row,
    assert_agree,
    by_pytrec_eval,
    nested,
    printed,
    put_qrels,
    ranking,
    refused,
    values_of,
)
from support.inputs import run_table, trec_run, write

Run = Mapping[str, Mapping[str, float]]
PARQUET_FIRST = pytest.mark.parametrize("form", ["parquet", *in_campaigns("trec")])
FORMATS_OF_RUNS = pytest.mark.parametrize("form", ["trec", *in_campaigns("parquet")])


def put_run(path: Path, rows: Sequence[Row], form: str, row_group_size: int = 1 << 16) -> str:
    """A run of these rows, in their order."""
    if form == "trec":
        return write(path.with_suffix(".run"), trec_run(rows))
    file = path.with_suffix(".parquet")
    pq.write_table(pa.table(run_table(rows)), file, row_group_size=row_group_size)
    return str(file)


def bounds_of(output: Path) -> dict[str, tuple[float, float, float]]:
    """metric → lowest value that ties allow, value, highest: means of the only configuration."""
    (part,) = output.glob("configuration_metrics/*/*.parquet")
    rows = pq.read_table(part).to_pylist()
    return {row["metric"]: (row["tie_lowest"], row["mean"], row["tie_highest"]) for row in rows}


def by_id_descending(names: Iterable[str]) -> list[str]:
    return sorted(names, key=str.encode, reverse=True)


# --- Many --------------------------------------------------------------------------------------------------------


@pytest.mark.long
@FORMATS_OF_RUNS
def test_one_query_with_very_many_results(tmp_path: Path, form: str) -> None:
    draw = random.Random(1)
    # pytrec_eval compares 32-bit floats, which these are; each score stands some four times.
    rows = [("q", f"d{number}", draw.randrange(15_000) / 8) for number in range(60_000)]
    judgements = [("q", f"d{number}", float(draw.choice([0, 0, 1, 2]))) for number in range(0, 72_000, 31)]
    run = put_run(tmp_path / "a", rows, form, row_group_size=3_000)
    ours = values_of(printed(put_qrels(tmp_path / "a", judgements, form), run))
    assert set(ours) == {"q", "all"}
    assert ours["q"] == ours["all"]
    assert_agree(ours, by_pytrec_eval(judgements, rows))
    assert 0 < ours["q"]["AP"] < 1


@pytest.mark.campaign
@FORMATS_OF_RUNS
def test_very_many_queries_with_one_result_each(tmp_path: Path, form: str) -> None:
    count = 100_000
    judgements = [(f"q{number}", f"d{number}", 1.0) for number in range(count)]
    # Of ten queries three find what they look for, one is missing from the run, and six find something else.
    rows = [
        (f"q{number}", f"d{number if number % 10 < 3 else number + 1}", 1.0) for number in range(count) if number % 10
    ]
    run = put_run(tmp_path / "a", rows[::-1], form, row_group_size=30_000)
    ours = values_of(printed(put_qrels(tmp_path / "a", judgements, form), run, metrics=["RR", "P@5"]))
    expected = {f"q{number}": float(number % 10 in (1, 2)) for number in range(count)}
    mean = math.fsum(expected.values()) / count
    assert ours.pop("all") == {"RR": mean, "P@5": pytest.approx(mean / 5, rel=0, abs=1e-15)}
    assert {query: values["RR"] for query, values in ours.items()} == expected
    assert {query: values["P@5"] for query, values in ours.items()} == {q: hit / 5 for q, hit in expected.items()}


@PARQUET_FIRST
def test_all_scores_equal(tmp_path: Path, form: str) -> None:
    draw = random.Random(2)
    tied = {"zero": 0.0, "negative": -3.5, "large": 2.0**100, "huge": 1e300, "smallest": 5e-324}
    rows = [(query, doc, score) for query, score in tied.items() for doc in draw.sample(NAMES, len(NAMES))]
    judgements = [(query, doc, 1.0) for query in tied for doc in draw.sample(NAMES, 4)]
    ours = values_of(printed(put_qrels(tmp_path / "a", judgements), put_run(tmp_path / "a", rows, form)))
    for query, relevant in nested(judgements).items():
        ranks = sorted(by_id_descending(NAMES).index(doc) + 1 for doc in relevant)
        assert ours[query]["RR"] == 1 / ranks[0]
        average = sum(place / rank for place, rank in enumerate(ranks, start=1)) / 4
        assert ours[query]["AP"] == pytest.approx(average, rel=0, abs=TOLERANCE)
    single = {"zero", "negative", "large"}  # numbers that pytrec_eval knows
    assert_agree(ours, by_pytrec_eval(judgements, [row for row in rows if row[0] in single]))


@FORMATS_OF_RUNS
def test_how_far_the_order_reaches_where_all_scores_are_equal(tmp_path: Path, form: str) -> None:
    rows = [("q", f"d{number}", 7.0) for number in range(10)]
    judgements = [("q", "d3", 1.0), ("q", "d8", 2.0), ("q", "d5", 0.0), ("q", "elsewhere", 1.0)]
    out = tmp_path / "out"
    metrics = ["RR", "P@5", "R@5", "AP", "nDCG@3", "SetP"]
    options = ["--ties", "--output", str(out)]
    printed(put_qrels(tmp_path / "a", judgements), put_run(tmp_path / "a", rows, form), *options, metrics=metrics)
    ideal = 2 + 1 / math.log2(3) + 1 / 2
    # d9, d8, …, d0: the relevant documents stand at ranks 2 and 7.
    expected = {
        "RR": (1 / 9, 1 / 2, 1),
        "P@5": (0, 1 / 5, 2 / 5),
        "R@5": (0, 1 / 3, 2 / 3),
        "AP": ((1 / 9 + 2 / 10) / 3, (1 / 2 + 2 / 7) / 3, 2 / 3),
        "nDCG@3": (0, 2 / math.log2(3) / ideal, (2 + 1 / math.log2(3)) / ideal),
        "SetP": (1 / 5, 1 / 5, 1 / 5),
    }
    ends = bounds_of(out)
    assert set(ends) == set(expected)
    for metric, bounds in expected.items():
        assert ends[metric] == pytest.approx(bounds, rel=0, abs=1e-12), metric


@FORMATS_OF_RUNS
@pytest.mark.parametrize("scores", [(0.0, -0.0), *in_campaigns(((-0.0, 0.0),))])
def test_zero_is_zero_with_either_sign(tmp_path: Path, form: str, scores: tuple[float, float]) -> None:
    rows = [("q", "a", scores[0]), ("q", "b", scores[1]), ("q", "below", -5e-324), ("q", "above", 5e-324)]
    judgements = [("q", "a", 1.0)]
    run, out = put_run(tmp_path / "a", rows, form), tmp_path / "out"
    ours = values_of(
        printed(put_qrels(tmp_path / "a", judgements), run, "--ties", "--output", str(out), metrics=["RR"])
    )
    assert ours["q"]["RR"] == 1 / 3
    assert bounds_of(out)["RR"] == (1 / 3, 1 / 3, 1 / 2)


# Nothing tells these apart but their last byte; é and è end in A9 and A8, 日 and 旤 in A5 and A4.
LONG_ENDS = ("abcxyz019~", "éèêëàáâã", "日旤旦旧旨旪", "😀😁😂😃😄😅")


@PARQUET_FIRST
def test_ids_of_a_kilobyte_that_differ_in_their_last_byte(tmp_path: Path, form: str) -> None:
    draw = random.Random(3)
    rows, judgements = [], []
    for ends in LONG_ENDS:
        names = [(ends[0] * 1024)[: 1024 // len(ends[0].encode())] + end for end in ends]
        assert len({name.encode()[:-1] for name in names}) == 1
        for query, tied in ((names[0], True), (names[1], False), (names[2], False)):
            rows += [(query, doc, 1.0 if tied else float(draw.randrange(4))) for doc in names]
            judgements += [(query, doc, float(draw.choice([0, 1, 2]))) for doc in draw.sample(names, len(ends) // 2)]
    draw.shuffle(rows)
    qrels = put_qrels(tmp_path / "a", judgements, form)
    ours = values_of(printed(qrels, put_run(tmp_path / "a", rows, form, row_group_size=37)))
    assert len(ours) == 3 * len(LONG_ENDS) + 1
    assert_agree(ours, by_pytrec_eval(judgements, rows))
    pools = nested(judgements)
    for query, results in nested(rows).items():
        ranked = sorted(by_id_descending(results), key=results.__getitem__, reverse=True)  # stable, in reverse too
        ranks = [rank for rank, doc in enumerate(ranked, start=1) if pools[query].get(doc, 0) > 0]
        assert ours[query]["RR"] == (1 / ranks[0] if ranks else 0.0)


# --- Judgements --------------------------------------------------------------------------------------------------


@pytest.mark.long
@FORMATS_OF_RUNS
def test_all_documents_unjudged(tmp_path: Path, form: str) -> None:
    rows = [(f"q{number}", f"d{place}", float(place)) for number in range(20) for place in range(50)]
    judgements = [(f"q{number}", f"other{place}", 1.0) for number in range(20) for place in range(5)]
    qrels, run = put_qrels(tmp_path / "a", judgements), put_run(tmp_path / "a", rows, form)
    for options, retrieved in ([], 50), (["--judged-only", "--ties"], 0), (["-M", "3", "--ties"], 3):
        more = ("--allow-disjoint", *options)
        ours = values_of(printed(qrels, run, *more, metrics=[*METRICS, "Judged@10", "infAP", "NumRet"]))
        assert set(ours) == {"all", *(f"q{number}" for number in range(20))}
        for query, values in ours.items():
            *others, count = values.values()
            assert (set(others), count) == ({0.0}, retrieved), (query, options)


def with_repeat(first: int, second: int, count: int) -> list[Row]:
    """In the row at `second` the document of the row at `first` stands again."""
    rows = ranking(count)
    assert rows[first][0] == rows[second][0]
    rows[second] = (rows[first][0], rows[first][1], rows[second][2])
    return rows


@pytest.mark.long
@pytest.mark.parametrize(
    ("first", "second", "form"),
    [
        (1, 29_999, "trec"),
        (0, 2, "trec"),
        (12_344, 20_000, "parquet"),
        *in_campaigns((1, 29_999, "parquet"), (0, 2, "parquet"), (12_344, 20_000, "trec")),
    ],
)
def test_a_document_twice_far_apart_is_refused(tmp_path: Path, form: str, first: int, second: int) -> None:
    rows = with_repeat(first, second, 30_000)
    run = put_run(tmp_path / "a", rows, form, row_group_size=1000)
    qrels = put_qrels(tmp_path / "a", [("q0", "d0", 1.0), ("q1", "d1", 1.0)])
    query, doc, _ = rows[first]
    message = refused(qrels, run)
    assert message.startswith(
        f"rankbeam: {run}:{second + 1}: document {doc!r} occurs more than once in the ranking of query {query!r} "
        f"(also at line {first + 1}); "
    )
    assert "--duplicates collapse" in message


@FORMATS_OF_RUNS
def test_a_document_twice_in_two_files_of_a_run_is_refused(tmp_path: Path, form: str) -> None:
    rows = with_repeat(4, 20_000, 30_000)
    one = put_run(tmp_path / "part1", rows[:15_000], form, row_group_size=1000)
    two = put_run(tmp_path / "part2", rows[15_000:], form, row_group_size=1000)
    qrels = put_qrels(tmp_path / "a", [("q0", "d0", 1.0)])
    message = refused(qrels, str(tmp_path / "part*"))
    assert message.startswith(
        f"rankbeam: {two}:5001: document 'd4' occurs more than once in the ranking of query 'q0' "
    )
    assert f"(also at {one}:5)" in message


@pytest.mark.long
@FORMATS_OF_RUNS
@pytest.mark.parametrize(
    ("first", "second", "files", "backwards"),
    [(12_344, 20_000, 2, True), (0, 2, 1, False), *in_campaigns((1, 29_999, 1, True), (1, 29_999, 2, False))],
)
def test_the_best_rank_of_a_document_stands_for_it(
    tmp_path: Path, form: str, first: int, second: int, files: int, backwards: bool
) -> None:
    rows = with_repeat(first, second, 30_000)
    query, doc, _ = rows[first]
    judgements = [(query, doc, 1.0), (query, "d29994" if query == "q0" else "d29995", 2.0)]
    remaining = [row for place, row in enumerate(rows) if place != second]
    shown = rows[::-1] if backwards else rows
    for part in range(files):
        put_run(tmp_path / f"part{part}", shown[part::files], form, row_group_size=1000)
    qrels = put_qrels(tmp_path / "a", judgements)
    ours = values_of(printed(qrels, str(tmp_path / "part*"), "--duplicates", "collapse"))
    assert_agree(ours, by_pytrec_eval(judgements, remaining))


@pytest.mark.long
@PARQUET_FIRST
def test_the_same_document_for_two_queries_is_no_repeat(tmp_path: Path, form: str) -> None:
    rows = [(f"q{number}", "d", 1.0) for number in range(1000)]
    qrels = put_qrels(tmp_path / "a", [(query, doc, 1.0) for query, doc, _ in rows])
    assert set(values_of(printed(qrels, put_run(tmp_path / "a", rows, form)))["all"].values()) == {1.0, 0.2}


# --- Order -------------------------------------------------------------------------------------------------------


def round_robin(rows: list[Row]) -> list[Row]:
    """The rows of one query stand as far from each other as they can."""
    order = sorted(rows, key=lambda row: (int(row[1][1:]), row[0]))
    assert order[0][0] != order[1][0]
    return order


def shuffled(rows: list[Row]) -> list[Row]:
    return random.Random(6).sample(rows, len(rows))


@pytest.mark.long
@FORMATS_OF_RUNS
@pytest.mark.parametrize("arrange", [shuffled, *in_campaigns(round_robin)])
def test_rows_of_a_query_far_apart(tmp_path: Path, form: str, arrange: Callable[[list[Row]], list[Row]]) -> None:
    draw = random.Random(5)
    rows = [(f"q{number}", f"d{doc}", draw.randrange(40) / 4) for number in range(300) for doc in range(100)]
    judgements = [(f"q{number}", f"d{doc}", float(draw.choice([0, 1, 2]))) for number in range(300) for doc in range(9)]
    qrels = put_qrels(tmp_path / "a", judgements)
    together = printed(qrels, put_run(tmp_path / "a", sorted(rows), form))
    apart = printed(qrels, put_run(tmp_path / "a", arrange(rows), form, row_group_size=777))
    assert apart == together
    assert_agree(values_of(apart), by_pytrec_eval(judgements, rows))
