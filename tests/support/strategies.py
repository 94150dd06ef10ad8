"""Hypothesis strategies for collections and metrics, and one seeded collection of realistic size."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st
from support.assessments import Row

from rankbeam.transforms.records.metrics.definitions import METRICS
from rankbeam.transforms.records.metrics.names import Metric, Option

# Ids whose order by bytes differs from their order by number, by letter or by UTF-16 unit.
DOCUMENTS = ("d1", "d10", "d2", "D3", "d", "_", "~", "é", "z", "日本", "\uffee", "😀")
QUERIES = ("q1", "q2", "q10", "ü")
# pytrec_eval compares scores as float32: every value of this grid, sign and all, is one.
SCORES = st.integers(-4, 4).map(lambda quarter: quarter / 4)
GRADES = st.sampled_from([-2, -1, 0, 0, 1, 1, 2, 3])
T = TypeVar("T")


def lists_up_to(most: int, elements: st.SearchStrategy[T], least: int = 0) -> st.SearchStrategy[list[T]]:
    """Lists of any length; the longest one of `st.lists` has about twenty elements, whatever its `max_size` is."""
    return st.integers(least, most).flatmap(lambda length: st.lists(elements, min_size=length, max_size=length))


@st.composite
def collections(draw: st.DrawFn) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Graded qrels of one to four queries, and a run that may lack queries, tie, and hold unjudged documents."""
    pools = st.dictionaries(st.sampled_from(DOCUMENTS), GRADES, min_size=1)
    # pytrec_eval's ndcg never returns for a query whose grades are all negative.
    answerable = pools.filter(lambda pool: max(pool.values()) >= 0)
    qrels = draw(st.dictionaries(st.sampled_from(QUERIES), answerable, min_size=1))
    results = st.dictionaries(st.sampled_from(DOCUMENTS), SCORES, min_size=1)
    run = draw(st.dictionaries(st.sampled_from([*QUERIES, "not judged"]), results))
    return qrels, run


@st.composite
def judged_rows(draw: st.DrawFn) -> tuple[dict[str, dict[str, float]], list[Row]]:
    """Like `collections`, with empty and all-negative pools, fractional grades, and repeated documents."""
    grades = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0])
    pools = st.dictionaries(st.sampled_from(DOCUMENTS), grades)
    qrels = draw(st.dictionaries(st.sampled_from(QUERIES), pools, min_size=1))
    rows = st.tuples(st.sampled_from(sorted(qrels)), st.sampled_from(DOCUMENTS), SCORES)
    return qrels, draw(st.lists(rows, max_size=40))


def large_collection(
    seed: int, *, grades: Sequence[int], ties: bool
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Sixty queries with 200 judgements and up to 300 results each; their ids are numbers, as gdeval wants them."""
    draw = np.random.default_rng(seed)
    qrels, run = {}, {}
    for query in map(str, range(60)):
        judged = draw.choice(500, 200, replace=False).tolist()
        rows = draw.choice(500, draw.integers(1, 301), replace=False).tolist()
        scores = draw.choice(100 if ties else 5000, len(rows), replace=ties) / 8
        qrels[query] = {f"d{doc}": int(draw.choice(grades)) for doc in judged}
        run[query] = {f"d{doc}": float(score) for doc, score in zip(rows, scores, strict=True)}
    return qrels, run


def _each_metric() -> list[Metric]:
    forms = []
    for name, definition in METRICS.items():
        forms += [] if definition.cutoff == "required" else [Metric(name)]
        forms += [] if definition.cutoff == "refused" else [Metric(name, cutoff=3)]
    return forms + [Metric(form.name, cutoff=form.cutoff, judged_only=True) for form in forms]


EACH_METRIC = tuple(_each_metric())
"""Every metric at its default options, with and without a cutoff, with and without unjudged documents."""

_OPTIONS: dict[str, st.SearchStrategy[Option]] = {
    "rel": st.floats(0, 1e9),
    "p": st.floats(0, 1),
    "recall": st.floats(0, 1),
    "beta": st.floats(0, 1e9),
    "multiple": st.floats(0, 1e9),
    "T": st.floats(0.5, 1e9),
    "min_rel": st.floats(0, 0.9),
    "max_rel": st.floats(1, 60),
    "normalize": st.booleans(),
    "gains": st.sampled_from(["{0:0.5,1:5,2:7}", "{1:3}", "{-1:1,0.5:2}"]),
    "gain": st.sampled_from(["linear", "exp"]),
    "graded": st.booleans(),
    "relative": st.booleans(),
}


@st.composite
def metrics(draw: st.DrawFn) -> Metric:
    """Any metric with any of its options, away from their default."""
    name = draw(st.sampled_from(sorted(METRICS)))
    definition = METRICS[name]
    options = draw(st.fixed_dictionaries({}, optional={option: _OPTIONS[option] for option in definition.options}))
    if options.get("graded"):
        options.pop("rel", None)
    if "gains" in options:
        options.pop("gain", None)
    changed = sorted(
        (option, value) for option, value in options.items() if value != definition.options[option].default
    )
    cutoffs = st.integers(1, 10_000)
    cutoff = draw({"required": cutoffs, "optional": st.none() | cutoffs, "refused": st.none()}[definition.cutoff])
    return Metric(name, tuple(changed), cutoff, draw(st.booleans()))
