"""Bounds of ties, through the command line and experiments, against every order of the tied documents."""

import csv
import io
import json
import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, permutations, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import pytrec_eval
from support.campaigns import in_campaigns
from support.inputs import run_table, trec_qrels, trec_run, write
from support.runs import rankbeam, run_experiment

from rankbeam.pipelines import show
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.run import buckets as number_of_buckets

Row = tuple[str, str, float]
Rows = list[Row]
Qrels = Mapping[str, Mapping[str, int]]
Bounds = dict[tuple[str, str], tuple[float, float]]
"""By query and metric, the lowest and the highest value over all orders."""

METRICS = {
    "nDCG@3": "ndcg_cut_3", "nDCG": "ndcg", "AP": "map", "AP@4": "map_cut_4", "RR": "recip_rank", "P@2": "P_2",
    "P@5": "P_5", "R@3": "recall_3", "Rprec": "Rprec", "Bpref": "bpref", "Success@1": "success_1",
    "SetP": "set_P", "SetAP": "set_map", "SetR": "set_recall", "SetF": "set_F",
}  # fmt: skip
METRIC_OPTIONS = tuple(word for metric in METRICS for word in ("-m", metric))
TOLERANCE = 1e-9


def collection(seed: int, scores: Sequence[float] = (3.0, 2.0, 1.0)) -> tuple[Qrels, Rows]:
    """Twelve judged queries, one of them without results, of up to eight results with at most 720 orders."""
    draw = random.Random(seed)
    qrels: dict[str, dict[str, int]] = {}
    rows: Rows = []
    for query in (f"q{number}" for number in range(12)):
        docs = draw.sample([f"d{number}" for number in range(12)], 11)
        qrels[query] = {doc: draw.choice([0, 0, 1, 2]) for doc in docs[3:]}
        ranking = [(query, doc, draw.choice(scores)) for doc in docs[: draw.randint(1, 8)]]
        if query != "q11" and math.prod(map(math.factorial, map(len, groups_of(ranking)))) <= 720:
            rows += ranking
    draw.shuffle(rows)
    return qrels, rows


def groups_of(rows: Rows) -> list[list[str]]:
    """The documents of one query, best first, those of equal score together."""
    ordered = sorted(rows, key=lambda row: -row[2])
    return [[doc for _, doc, _ in group] for _, group in groupby(ordered, key=lambda row: row[2])]


def orders(rows: Rows) -> Iterator[list[str]]:
    """Every ranking of one query that the ties allow; a document with several rows counts at its best."""
    for order in product(*(permutations(group) for group in groups_of(rows))):
        yield list(dict.fromkeys(chain(*order)))


def by_trial(
    qrels: Qrels,
    rows: Rows,
    *,
    max_documents: int | None = None,
    judged_only: bool = False,
    relevance_level: int = 1,
) -> Bounds:
    """Every order of every query, scored by pytrec_eval as a query of its own; a query without results scores 0."""
    bounds: Bounds = {}
    for query, pool in qrels.items():
        run = {}
        for number, order in enumerate(orders([row for row in rows if row[0] == query])):
            documents = [doc for doc in order[:max_documents] if not judged_only or doc in pool]
            run[str(number)] = {doc: -float(place) for place, doc in enumerate(documents)}
        answered = {name: ranking for name, ranking in run.items() if ranking}  # pytrec_eval crashes on empty ones
        judged = {name: dict(pool) for name in answered}
        measures = {re.sub(r"_(\d+)$", r".\1", name) for name in METRICS.values()}
        scored = pytrec_eval.RelevanceEvaluator(judged, measures, relevance_level=relevance_level).evaluate(answered)
        for ours, theirs in METRICS.items():
            values = [values[theirs] for values in scored.values()]
            values += [0.0] if len(answered) < len(run) else []
            bounds[query, ours] = min(values), max(values)
    return bounds


def files(folder: Path, qrels: Qrels, rows: Rows) -> tuple[Path, Path]:
    judgements = [(query, doc, float(grade)) for query, pool in qrels.items() for doc, grade in pool.items()]
    write(folder / "qrels.txt", trec_qrels(judgements))
    write(folder / "a.run", trec_run(rows))
    return folder / "qrels.txt", folder / "a.run"


def scored(folder: Path, qrels: Qrels, rows: Rows, *options: str) -> Path:
    """The folder that `rankbeam score --ties` wrote to."""
    outcome = rankbeam(
        "score", *files(folder, qrels, rows), *METRIC_OPTIONS, "--ties", "--output", folder / "out", *options
    )
    assert outcome.exit_code == 0, outcome.stderr
    return folder / "out"


def table_of(output: Path, name: str) -> list[dict[str, Any]]:
    return [row for part in output.glob(f"{name}/*/*.parquet") for row in pq.read_table(part).to_pylist()]


def of_queries(output: Path) -> dict[tuple[str, str], dict[str, float]]:
    """The table query_metrics by query and metric, as METRICS names it."""
    bounds = {}
    for row in table_of(output, "query_metrics"):
        names = [item["metric"] for item in row["metrics"]]
        assert [re.sub(r"\(.*\)", "", name) for name in names] == list(METRICS)
        bounds |= {(row["query_id"], ours): item for ours, item in zip(METRICS, row["metrics"], strict=True)}
    return bounds


def of_means(output: Path) -> dict[str, dict[str, float]]:
    """The table configuration_metrics by metric, as METRICS names it."""
    return {re.sub(r"\(.*\)", "", row["metric"]): row for row in table_of(output, "configuration_metrics")}


def assert_bounds(output: Path, expected: Bounds) -> None:
    """Queries and means are what was tried out; and something was."""
    by_metric = of_queries(output)
    assert set(by_metric) == set(expected)
    for key, bounds in expected.items():
        item = by_metric[key]
        assert (item["tie_lowest"], item["tie_highest"]) == pytest.approx(bounds, rel=0, abs=TOLERANCE), key
        assert item["tie_lowest"] <= item["value"] <= item["tie_highest"], key
    assert any(high - low > 0.1 for low, high in expected.values())
    means = of_means(output)
    for metric in METRICS:
        lowest, highest = np.mean([bounds for (_, name), bounds in expected.items() if name == metric], axis=0)
        row = means[metric]
        assert (row["tie_lowest"], row["tie_highest"]) == pytest.approx((lowest, highest), rel=0, abs=TOLERANCE)
        assert row["tie_lowest"] <= row["mean"] <= row["tie_highest"]
        for name, of_query in (("tie_lowest", "tie_lowest"), ("mean", "value"), ("tie_highest", "tie_highest")):
            values = [item[of_query] for (_, other), item in by_metric.items() if other == metric]
            assert row[name] == pytest.approx(math.fsum(values) / len(values), rel=1e-14)


def views_of(output: Path) -> tuple[dict[str, Any], dict[tuple[str, str], Any]]:
    """From results.duckdb: leaderboard by metric, and per_query by query and metric: lowest, value, highest."""
    with duckdb.connect(str(output / "results.duckdb"), read_only=True) as connection:
        board = connection.execute("SELECT metric, tie_lowest, mean, tie_highest FROM leaderboard").fetchall()
        rows = connection.execute("SELECT query_id, metric, tie_lowest, value, tie_highest FROM per_query").fetchall()
    return {metric: numbers for metric, *numbers in board}, {(q, metric): numbers for q, metric, *numbers in rows}


def assert_views(output: Path, expected: Bounds) -> None:
    """The views say the same as the tables."""
    leaderboard, per_query = views_of(output)
    assert (set(leaderboard), set(per_query)) == (set(METRICS), set(expected))
    for key, (low, value, high) in per_query.items():
        assert (low, high) == pytest.approx(expected[key], rel=0, abs=TOLERANCE)
        assert low <= value <= high
    for metric, row in of_means(output).items():
        assert leaderboard[metric] == [row["tie_lowest"], row["mean"], row["tie_highest"]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ((), {}),
        *in_campaigns(
            (("-M", "1"), {"max_documents": 1}),
            (("-M", "3"), {"max_documents": 3}),
            (("-J",), {"judged_only": True}),
            (("-l", "2"), {"relevance_level": 2}),
            (("-M", "2", "-J"), {"max_documents": 2, "judged_only": True}),
        ),
        (("-M", "4", "-J", "-l", "2"), {"max_documents": 4, "judged_only": True, "relevance_level": 2}),
    ],
    ids=str,
)
def test_bounds_are_the_extremes_of_all_orders(tmp_path: Path, options: tuple[str, ...], rules: dict[str, Any]) -> None:
    qrels, rows = collection(len(options))
    output, expected = scored(tmp_path, qrels, rows, *options), by_trial(qrels, rows, **rules)
    assert_bounds(output, expected)
    if not rules:
        assert_views(output, expected)


@pytest.mark.long
@pytest.mark.parametrize("options", [(), *in_campaigns((("-J",),), (("-l", "2"),))])
def test_documents_in_several_rows(tmp_path: Path, options: tuple[str, ...]) -> None:
    qrels, rows = collection(5)
    draw = random.Random(6)
    again = [(query, doc, draw.choice([3.0, 2.0, 1.0])) for query, doc, _ in rows if draw.random() < 0.3]
    many = [
        row
        for query in qrels
        for row in [row for row in rows + again if row[0] == query]
        if math.prod(map(math.factorial, map(len, groups_of([row for row in rows + again if row[0] == query])))) <= 5040
    ]
    assert len(many) > len({(query, doc) for query, doc, _ in many})
    output = scored(tmp_path, qrels, many, "--duplicates", "collapse", *options)
    rules = {"judged_only": "-J" in options, "relevance_level": 2 if "-l" in options else 1}
    assert_bounds(output, by_trial(qrels, many, **rules))


def test_a_cut_through_rows_that_may_repeat_leaves_the_bounds_open(tmp_path: Path) -> None:
    # How many documents stand in the first two rows is itself a matter of order.
    output = scored(tmp_path, *collection(0), "--duplicates", "collapse", "-M", "2")
    assert {(row["tie_lowest"], row["tie_highest"]) for row in of_queries(output).values()} == {(None, None)}
    assert {(row["tie_lowest"], row["tie_highest"]) for row in of_means(output).values()} == {(None, None)}


def test_distinct_scores_leave_no_choice(tmp_path: Path) -> None:
    qrels, rows = collection(1)
    distinct = [(query, doc, float(place)) for place, (query, doc, _) in enumerate(rows)]
    output = scored(tmp_path, qrels, distinct)
    for item in of_queries(output).values():
        assert item["tie_lowest"] == item["value"] == item["tie_highest"]
    for row in of_means(output).values():
        assert row["tie_lowest"] == row["mean"] == row["tie_highest"]


# --- Where it is shown -------------------------------------------------------------------------------------------


def means_of(text: str) -> dict[str, tuple[float, float]]:
    """metric → bounds, as the last table on the screen says."""
    head, row = re.search(r"if ties fell otherwise(.*)\n─+.*\n?(.*)", text).groups()
    cells = re.findall(r"(\d\.\d{4}) to (\d\.\d{4})|(no matter)", row)
    assert len(head.split()) == len(cells)
    return {
        metric: (float(low), float(high))
        for metric, (low, high, none) in zip(head.split(), cells, strict=True)
        if not none
    }


@pytest.mark.long
def test_the_forms_of_output(tmp_path: Path) -> None:
    qrels, rows = collection(2)
    paths = files(tmp_path, qrels, rows)
    text = {}
    for ties in (False, True):
        out = str(tmp_path / f"out-{ties}")
        outcome = rankbeam("score", *paths, *METRIC_OPTIONS, "--output", out, *(["--ties"] if ties else []))
        assert outcome.exit_code == 0
        results = find_run(out)
        text["table", ties] = outcome.stdout.partition("\nrun ")[0]
        text["json", ties] = "".join(show.as_json(results, per_query=True))
        text["csv", ties] = "".join(show.as_csv(results, per_query=True))
        text["trec", ties] = "\n".join(show.as_trec(results, {}, per_query=True))
    expected = by_trial(qrels, rows)
    assert text["csv", True] == text["csv", False]
    assert text["trec", True] == text["trec", False]
    assert len(list(csv.reader(io.StringIO(text["csv", True])))) == 1 + len(METRICS) * (len(qrels) + 1)

    assert set(text["table", False].splitlines()) <= set(text["table", True].splitlines())
    assert "if ties" not in text["table", False]
    table = means_of(text["table", True])
    documents = {ties: json.loads(text["json", ties]) for ties in (False, True)}
    for metric in METRICS:
        mean = np.mean([bounds for (_, name), bounds in expected.items() if name == metric], axis=0)
        assert table.get(metric, (mean[0], mean[0])) == pytest.approx(tuple(mean), rel=0, abs=6e-5)
        slices = {ties: documents[ties]["leaderboard"][0]["slices"]["all"][metric] for ties in documents}
        assert (slices[True]["tie_lowest"], slices[True]["tie_highest"]) == pytest.approx(tuple(mean), abs=TOLERANCE)
        assert (slices[False]["tie_lowest"], slices[False]["tie_highest"]) == (None, None)
        assert slices[True] | {"tie_lowest": None, "tie_highest": None} == slices[False]
    for query in documents[True]["per_query"]:
        for metric, bounds in query["ties"].items():
            assert tuple(bounds) == pytest.approx(expected[query["query_id"], metric], rel=0, abs=TOLERANCE)
    assert all("ties" not in query for query in documents[False]["per_query"])


def experiment(*, ties: bool | None, **more: Any) -> dict[str, Any]:
    settings = {} if ties is None else {"ties": ties}
    run_file = {"type": "run_file", "path": "a.run"}
    return {
        "dataset": {"qrels": "qrels.txt"},
        "configurations": [{"name": "a", "retriever": run_file}],
        "metrics": list(METRICS),
        **settings,
        **more,
    }


def test_an_experiment_asks_for_them(tmp_path: Path) -> None:
    qrels, rows = collection(3)
    files(tmp_path, qrels, rows)
    results = run_experiment(tmp_path, experiment(ties=True))
    assert_bounds(Path(results.output), by_trial(qrels, rows))


@pytest.mark.parametrize("ties", [None, *in_campaigns(False)])
def test_unasked_they_are_null(tmp_path: Path, ties: bool | None) -> None:
    files(tmp_path, *collection(3))
    output = Path(run_experiment(tmp_path, experiment(ties=ties)).output)
    assert {(item["tie_lowest"], item["tie_highest"]) for item in of_queries(output).values()} == {(None, None)}
    assert {(row["tie_lowest"], row["tie_highest"]) for row in of_means(output).values()} == {(None, None)}


def test_slices_have_bounds_of_their_own(tmp_path: Path) -> None:
    qrels, rows = collection(4)
    files(tmp_path, qrels, rows)
    lines = [json.dumps({"_id": query, "text": "x", "metadata": {"half": int(query[1:]) % 2}}) for query in qrels]
    write(tmp_path / "queries.jsonl", "\n".join(lines))
    dataset = {"qrels": "qrels.txt", "queries": "queries.jsonl"}
    results = run_experiment(tmp_path, experiment(ties=True, dataset=dataset, slices=["half"]))
    expected = by_trial(qrels, rows)
    bounds = {(row.slice, row.metric): (row.tie_lowest, row.tie_highest) for row in results.means.values()}
    assert {name for name, _ in bounds} == {"all", "half=0", "half=1"}
    for half in (0, 1):
        for metric in METRICS:
            here = [expected[query, metric] for query in qrels if int(query[1:]) % 2 == half]
            mean = tuple(np.mean(here, axis=0))
            assert bounds[f"half={half}", metric] == pytest.approx(mean, rel=0, abs=TOLERANCE)


# --- What they do not depend on, and what they do ----------------------------------------------------------------


@pytest.mark.campaign
@pytest.mark.parametrize("buckets", [64, *in_campaigns(1)])
def test_neither_buckets_nor_row_order_matter(tmp_path: Path, buckets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    qrels, rows = collection(7)
    reference = scored(tmp_path / "one", qrels, rows)
    monkeypatch.setattr(number_of_buckets, "LEAST", buckets)
    other = scored(tmp_path / "other", dict(reversed(qrels.items())), sorted(rows))
    assert of_queries(other) == of_queries(reference)
    numbers = ("mean", "tie_lowest", "tie_highest")
    means = [
        {name: [row[number] for number in numbers] for name, row in of_means(at).items()} for at in (reference, other)
    ]
    assert means[0] == means[1]


@pytest.mark.campaign
def test_row_groups_do_not_matter(tmp_path: Path) -> None:
    qrels, rows = collection(8)
    reference = scored(tmp_path, qrels, rows)
    pq.write_table(pa.table(run_table(rows)), tmp_path / "a.parquet", row_group_size=3)
    arguments = [
        tmp_path / "qrels.txt",
        tmp_path / "a.parquet",
        *METRIC_OPTIONS,
        "--ties",
        "--output",
        tmp_path / "parquet",
    ]
    assert rankbeam("score", *arguments).exit_code == 0
    assert of_queries(tmp_path / "parquet") == of_queries(reference)


CLOSE = (20.0, 20.0000001, 20.0000002, 19.5)
"""The first three are one 32-bit float."""


def test_ties_of_32_bit_floats_count_where_the_dialect_has_them(tmp_path: Path) -> None:
    qrels, rows = collection(9, CLOSE)
    rounded = [(query, doc, float(np.float32(score))) for query, doc, score in rows]
    # pytrec_eval leaves queries without results out, also of the mean.
    judged = {query: pool for query, pool in qrels.items() if any(row[0] == query for row in rows)}
    assert 2 < len(judged) < len(qrels)
    output = scored(tmp_path, qrels, rows, "--dialect", "pytrec_eval,rankbeam")
    configurations = {row["config_id"]: row["name"] for row in table_of(output, "configurations")}
    by_name: dict[str, Bounds] = {name: {} for name in configurations.values()}
    for row in table_of(output, "query_metrics"):
        for item in row["metrics"]:
            key = row["query_id"], item["metric"]
            by_name[configurations[row["config_id"]]][key] = item["tie_lowest"], item["tie_highest"]
    (single,) = (by_name[name] for name in by_name if "dialect=pytrec_eval" in name)
    (double,) = (by_name[name] for name in by_name if "dialect=" not in name)
    expected = {"single": by_trial(judged, rounded), "double": by_trial(qrels, rows)}
    assert (set(single), set(double)) == (set(expected["single"]), set(expected["double"]))
    for name, bounds in (("single", single), ("double", double)):
        for key, pair in bounds.items():
            assert pair == pytest.approx(expected[name][key], rel=0, abs=TOLERANCE), (name, key)
    assert any(single[key] != double[key] for key in single)
    for row in table_of(output, "configuration_metrics"):
        row_bounds = by_name[configurations[row["config_id"]]]
        here = [bounds for (_, metric), bounds in row_bounds.items() if metric == row["metric"]]
        assert (row["tie_lowest"], row["tie_highest"]) == pytest.approx(tuple(np.mean(here, axis=0)), rel=1e-14)
