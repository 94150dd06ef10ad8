"""The reach of ties against every order of the tied documents, tried out one by one in plain Python."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain, combinations_with_replacement, groupby, pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.assessments import Qrels, Row, assessment_of
from support.campaigns import examples
from support.strategies import large_collection

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking import incomplete, ties
from rankbeam.transforms.kernels.ranking import metrics as kernels
from rankbeam.transforms.kernels.ranking.rankings import Assessment
from rankbeam.transforms.kernels.ranking.ties import Kernel, best_order, worst_order
from rankbeam.transforms.records.metrics import definitions
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.records.metrics.values import tie_bounds

METRICS = {name: definition for name, definition in definitions.METRICS.items() if definition.ties is not None}
TIES = {definition.kernel: definition.ties for definition in METRICS.values()}


def bounds(a: Assessment, kernel: Kernel, options: Mapping[str, Any], **rules: Any) -> tuple[FloatArray, FloatArray]:
    return ties.bounds(a, kernel, options, TIES[kernel], **rules)


Groups = Sequence[Sequence[str]]
"""The documents of a ranking, best first, those of equal score together."""


@dataclass(frozen=True)
class Tied:
    """One ranking with ties, and the grade of every document of the pool."""

    pool: Mapping[str, float]
    groups: Groups


def assess(rankings: Sequence[Groups], pools: Sequence[Mapping[str, float]], chunks: bool) -> Assessment:
    """See rankings as they stand, with the ranks that each hit's tie group takes."""
    qrels = {str(place): pool for place, pool in enumerate(pools)}
    rows = [(str(place), doc, -float(at)) for place, groups in enumerate(rankings) for at, doc in numbered(groups)]
    a = assessment_of(qrels, rows, chunks=chunks)
    reach = [list(reaches(map(len, groups))) for groups in rankings]
    mine = [reach[query][rank - 1] for query, rank in zip(a.hit_query.tolist(), a.hit_rank.tolist(), strict=True)]
    first, last = np.array(mine, np.int64).reshape(-1, 2).T
    return replace(a, hit_first=first, hit_last=last)


def numbered(groups: Groups) -> Iterable[tuple[int, str]]:
    return enumerate(chain.from_iterable(groups))


def reaches(sizes: Iterable[int]) -> Iterable[tuple[int, int]]:
    """The first and the last rank of every document's group."""
    done = 0
    for size in sizes:
        yield from [(done + 1, done + size)] * size
        done += size


def orders(groups: Groups) -> list[Groups]:
    """Every ranking that the ties allow."""
    return [[[doc] for doc in chain(*order)] for order in set(product(*(permutations(group) for group in groups)))]


# The product of the factorials is the number of orders. Documents alone on top push the tied ones down.
SIZES = st.sampled_from([(4,), (5,), (1, 4), (1, 1, 1, 4), (3, 3), (2, 3, 2), (4, 2), (1, 3, 1, 2), (2, 2, 2, 2)])
GRADES = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.0, 2.0, 3.0])


@st.composite
def tied(draw: st.DrawFn, chunks: bool = False) -> Tied:
    """A ranking with ties; with chunks, it can contain a document several times."""
    sizes = draw(SIZES)
    names = ["a", "b", "c", "d"] if chunks else [f"d{place}" for place in range(sum(sizes))]
    pool = draw(st.dictionaries(st.sampled_from([*names, "elsewhere", "too"]), GRADES))
    repeating = st.lists(st.sampled_from(names), min_size=sum(sizes), max_size=sum(sizes))
    docs = iter(draw(repeating if chunks else st.permutations(names)))
    return Tied(pool, [[next(docs) for _ in range(size)] for size in sizes])


VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "rel": st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    "p": st.sampled_from([0.5, 0.8, 1.0]),
    "beta": st.sampled_from([0.5, 2.0]),
    "recall": st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    "multiple": st.sampled_from([0.0, 0.3, 1.0, 1.7]),
    "T": st.sampled_from([0.5, 1.0, 3.0]),
    "min_rel": st.sampled_from([0.0, 0.5]),
    "max_rel": st.sampled_from([1.0, 4.0]),
    "normalize": st.booleans(),
    "gain": st.sampled_from(["linear", "exp"]),
    "gains": st.just(""),  # with gains, the bounds are unknown
    "graded": st.booleans(),
    "relative": st.booleans(),
}


def options_of(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Keyword arguments of a metric's kernel."""
    definition = METRICS[name]
    chosen = {option: VALUES[option] for option in definition.options}
    cutoffs = {"required": st.integers(1, 9), "optional": st.none() | st.integers(1, 9)}
    if definition.cutoff in cutoffs:
        chosen["cutoff"] = cutoffs[definition.cutoff]
    return st.fixed_dictionaries(chosen)


def is_exact(name: str, query: Tied, rel: float) -> bool:
    """Return whether the lowest value is the value of some order, as the documentation claims."""
    seen: set[str] = set()
    for group in query.groups:
        grades = [query.pool[doc] for doc in group if doc in query.pool]
        if name == "infAP" and max(grades, default=-1) >= rel and min(grades) < 0:
            return False
        relevant = [doc for doc in group if query.pool.get(doc, -1) >= rel and doc not in seen]
        if name == "chunk_R" and len(set(relevant)) < len(relevant):
            return False
        seen.update(group)
    return True


def by_trial(query: Tied, chunks: bool, kernel: Kernel, options: Mapping[str, Any]) -> FloatArray:
    rankings = orders(query.groups)
    return kernel(assess(rankings, [query.pool] * len(rankings), chunks), **options)


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=examples(50))
@given(data=st.data())
def test_bounds_are_the_extremes_of_all_orders(name: str, data: st.DataObject) -> None:
    chunks, kernel = METRICS[name].chunks, METRICS[name].kernel
    query, options = data.draw(tied(chunks)), data.draw(options_of(name))
    every = by_trial(query, chunks, kernel, options)
    lowest, highest = bounds(assess([query.groups], [query.pool], chunks), kernel, options)
    assert highest.tolist() == pytest.approx([every.max()], rel=0, abs=1e-12)
    if is_exact(name, query, options.get("rel", 1.0)):
        assert lowest.tolist() == pytest.approx([every.min()], rel=0, abs=1e-12)
    else:
        assert lowest[0] <= every.min() + 1e-12
    if TIES[kernel].is_free:
        assert len(set(every.tolist())) == 1


def test_every_metric_has_its_entry() -> None:
    assert definitions.METRICS.keys() - METRICS.keys() == {"BPM"}


def test_the_best_documents_first_are_not_always_best_for_bpm() -> None:
    pool = {"half": 0.5, "too": 0.5, "full": 1.0}
    ranked = [[["a"], ["b"], ["c"], *([doc] for doc in order)] for order in (["full", "half"], ["half", "full"])]
    sorted_, other = definitions.METRICS["BPM"].kernel(assess(ranked, [pool] * 2, False), cutoff=9, max_rel=1.0)
    assert (sorted_, other) == (1 / 4, 1.5 / 5)


def test_bounds_are_unknown_where_a_higher_grade_may_gain_less() -> None:
    a = assess([[["high", "low"]]], [{"high": 2.0, "low": 1.0}], chunks=False)
    metrics = [parse_metric("nDCG(gains={1:1,2:0})"), parse_metric("nDCG")]
    assert tie_bounds(metrics, a, None, None)[:, 0, 0].tolist() == [0.0, 1.0]
    assert 0.0 < tie_bounds(metrics, a, None, None)[0, 0, 1] < 1.0


@given(queries=st.lists(tied(), min_size=1, max_size=4), judged_only=st.booleans(), top_k=st.none() | st.integers(1, 8))
def test_unknown_ties_have_the_whole_range_where_judged_documents_are_tied(
    queries: list[Tied], judged_only: bool, top_k: int | None
) -> None:
    a = assess([query.groups for query in queries], [query.pool for query in queries], chunks=False)
    rules = {"judged_only": judged_only, "top_k": top_k}
    lowest, highest = ties.bounds(a, kernels.average_precision, {}, None, **rules, most=2.0)
    known = bounds(a, kernels.average_precision, {}, **rules)
    for place, query in enumerate(queries):
        is_tied = any(len(group) > 1 and not query.pool.keys().isdisjoint(group) for group in query.groups)
        expected = (0.0, 2.0) if is_tied else (known[0][place], known[1][place])
        assert (lowest[place], highest[place]) == expected


# Judged a 2, b 0, c 1 and d, unjudged, share ranks 2 to 5 with one more; x, grade 1, is not retrieved.
EXAMPLE = Tied({"a": 2, "b": 0, "c": 1, "x": 1}, [["top"], ["d", "b", "c", "a"]])


@pytest.mark.parametrize(
    ("kernel", "options", "expected"),
    [
        (kernels.precision, {"cutoff": 2}, (0, 1 / 2)),
        (kernels.recall, {"cutoff": 3}, (0, 2 / 3)),
        (kernels.reciprocal_rank, {"rel": 2}, (1 / 5, 1 / 2)),
        (kernels.average_precision, {}, ((1 / 4 + 2 / 5) / 3, (1 / 2 + 2 / 3) / 3)),
        (incomplete.judged, {"cutoff": 3}, (1 / 3, 2 / 3)),
        (incomplete.bpref, {}, (0, 2 / 3)),
        (kernels.ndcg, {"cutoff": 3}, (0, (2 / np.log2(3) + 1 / 2) / (2 + 1 / np.log2(3) + 1 / 2))),
        (kernels.set_precision, {}, (2 / 5, 2 / 5)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_an_example_worked_out_by_hand(kernel: Kernel, options: dict[str, Any], expected: tuple[float, float]) -> None:
    actual = bounds(assess([EXAMPLE.groups], [EXAMPLE.pool], chunks=False), kernel, options)
    assert [bound.item() for bound in actual] == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize("name", ["SetP", "SetAP", "SetF"])
def test_among_the_judged_documents_of_a_cut_an_unjudged_one_is_better_than_a_non_relevant_one(name: str) -> None:
    # With the unjudged one in the cut in place of the non-relevant, all of its judged documents are relevant.
    pool = {"r": 1.0, "n": 0.0}
    a = assess([[["r", "n", "o"]]], [pool], chunks=False)
    lowest, highest = bounds(a, METRICS[name].kernel, {}, judged_only=True, top_k=2)
    assert (lowest.item(), highest.item()) == (0.0, 1.0)


def test_a_cut_inside_a_tie_decides_what_a_metric_of_the_whole_ranking_counts() -> None:
    a = assess([EXAMPLE.groups], [EXAMPLE.pool], chunks=False)
    actual = [bounds(a, kernels.num_relevant_retrieved, {}, top_k=top_k) for top_k in (None, 1, 3, 5)]
    assert [(lowest.item(), highest.item()) for lowest, highest in actual] == [(2, 2), (0, 0), (0, 2), (2, 2)]
    actual = [bounds(a, incomplete.num_non_relevant_retrieved, {}, top_k=top_k) for top_k in (None, 1, 2, 5)]
    assert [(lowest.item(), highest.item()) for lowest, highest in actual] == [(1, 1), (0, 0), (0, 1), (1, 1)]


def test_no_order_may_be_as_bad_as_a_bounded_metrics_lowest_value() -> None:
    # One document with two chunks, tied: it comes first in both orders, but its second chunk might be anyone's.
    chunks = Tied({"a": 1.0}, [["a", "a"]])
    lowest, _ = bounds(assess([chunks.groups], [chunks.pool], chunks=True), kernels.chunk_recall, {"cutoff": 1})
    assert (lowest[0], by_trial(chunks, True, kernels.chunk_recall, {"cutoff": 1}).min()) == (0.0, 1.0)
    # The unjudged document takes rank 1 either way; counted as half relevant it would give (1 + 1/2) / 2.
    sample = Tied({"a": 1.0, "b": -1.0}, [["a", "b"]])
    lowest, _ = bounds(assess([sample.groups], [sample.pool], chunks=False), incomplete.inferred_ap, {})
    assert (lowest[0], by_trial(sample, False, incomplete.inferred_ap, {}).min()) == (0.5, 0.75)


# R relevant, N not, U pooled but not judged, o outside the pool.
@pytest.mark.parametrize("above", ["", "R", "N", "U", "oo", "ooo", "Ro", "Noo", "RRN", "RRNoooo", "ooooooo"])
def test_unjudged_documents_of_the_pool_help_some_relevant_ones_and_harm_others(above: str) -> None:
    for group in combinations_with_replacement("RNUo", 4):
        kinds = [*above, *group]
        names = [f"{kind}{place}" for place, kind in enumerate(kinds)]
        grades = {"R": 1.0, "N": 0.0, "U": -1.0}
        pool = {name: grades[name[0]] for name in names if name[0] in grades}
        alone, together = [[name] for name in names[: len(above)]], names[len(above) :]
        every = by_trial(Tied(pool, [*alone, together]), False, incomplete.inferred_ap, {})
        variants = [[*alone, together], [*alone, together[::-1]]]  # of which one may be the best already
        lowest, highest = bounds(assess(variants, [pool, pool], chunks=False), incomplete.inferred_ap, {})
        assert highest.tolist() == pytest.approx([every.max()] * 2, rel=0, abs=1e-12), group
        assert (lowest <= every.min() + 1e-12).all(), group


def test_below_rank_100_000_the_epsilon_of_infap_turns_an_order_round() -> None:
    deep = 10**6
    a = assess([[["n"], ["r"]]], [{"n": 0.0, "r": 1.0}], chunks=False)
    ranks = np.array([deep + 1, deep + 2])
    here = np.full(2, deep + 1)
    a = replace(a, retrieved=np.array([deep + 2]), hit_rank=ranks, hit_first=here, hit_last=here + 1)
    value = incomplete.inferred_ap(a)
    assert value > incomplete.inferred_ap(best_order(a))
    lowest, highest = bounds(a, incomplete.inferred_ap, {})
    assert lowest <= value <= highest


@pytest.mark.parametrize("name", METRICS)
def test_no_shuffle_of_large_ties_leaves_the_bounds(name: str) -> None:
    definition = METRICS[name]
    options: dict[str, Any] = {"cutoff": 7} if definition.cutoff != "refused" else {}
    values = [definition.kernel(a, **options) for a in shuffles(definition.chunks)]
    actual = [bounds(a, definition.kernel, options) for a in shuffles(definition.chunks)]
    for lowest, highest in actual:
        assert (lowest <= np.min(values, axis=0) + 1e-12).all()
        assert (highest >= np.max(values, axis=0) - 1e-12).all()
    np.testing.assert_allclose(actual, [actual[0]] * len(actual), rtol=0, atol=1e-12)


@cache
def shuffles(chunks: bool) -> list[Assessment]:
    """Sixty rankings in which dozens of documents are tied, in ten of their orders."""
    qrels, run = large_collection(3, grades=[-1, 0, 0, 0, 1, 2, 3], ties=True)
    scored = {query: [(doc, -(-score // 2)) for doc, score in results.items()] for query, results in run.items()}
    if chunks:
        scored = {query: [(f"d{int(doc[1:]) // 2}", score) for doc, score in rows] for query, rows in scored.items()}
    rng = np.random.default_rng(4)
    rankings = [[grouped(rng.permutation(len(rows)), rows) for rows in scored.values()] for _ in range(10)]
    return [assess(ranking, list(qrels.values()), chunks) for ranking in rankings]


def grouped(order: Iterable[int], rows: Sequence[tuple[str, float]]) -> Groups:
    """Rows by score, highest first, and in the given order where scores are equal."""
    ranked = sorted((rows[row] for row in order), key=lambda row: -row[1])
    return [[doc for doc, _ in group] for _, group in groupby(ranked, key=lambda row: row[1])]


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_bounds_enclose_the_value_and_grow_with_the_ties(name: str, data: st.DataObject) -> None:
    chunks, kernel = METRICS[name].chunks, METRICS[name].kernel
    options = data.draw(options_of(name))
    queries = data.draw(st.lists(tied(chunks), min_size=1, max_size=5))
    pools = [query.pool for query in queries]

    def bounds_of(rankings: Sequence[Groups]) -> tuple[FloatArray, FloatArray]:
        return bounds(assess(rankings, pools, chunks), kernel, options)

    alone = [[[doc] for doc in chain(*query.groups)] for query in queries]
    value = kernel(assess(alone, pools, chunks), **options)
    lowest, highest = bounds_of([query.groups for query in queries])
    wider = bounds_of([[list(chain(*query.groups[:2])), *query.groups[2:]] for query in queries])
    assert [bound.tolist() for bound in bounds_of(alone)] == [value.tolist()] * 2
    assert (lowest <= value).all()
    assert (value <= highest).all()
    assert (wider[0] <= lowest + 1e-12).all()
    assert (highest <= wider[1] + 1e-12).all()
    by_query = [bounds(assess([query.groups], [query.pool], chunks), kernel, options) for query in queries]
    assert np.concatenate(by_query, axis=1).tolist() == [lowest.tolist(), highest.tolist()]


@given(queries=st.lists(tied(chunks=True), min_size=1, max_size=4), rel=VALUES["rel"])
def test_rearranged_hits_are_the_same_hits_inside_their_groups(queries: list[Tied], rel: float) -> None:
    a = assess([query.groups for query in queries], [query.pool for query in queries], chunks=True)
    rearranged: list[Callable[[Assessment], Assessment]] = [
        *(best_order, worst_order, ties.best_chunk_order, ties.worst_chunk_order),
        *(partial(order, rel=rel) for order in (ties.best_sample_order, ties.best_share_order, ties.worst_share_order)),
    ]
    for b in (rearrange(a) for rearrange in rearranged):
        assert hits_of(b) == hits_of(a)
        assert b.hit_first is a.hit_first
        assert b.hit_last is a.hit_last
        assert all(first <= rank <= last for rank, first, last in columns(b.hit_rank, b.hit_first, b.hit_last))
        places = list(columns(b.hit_query, b.hit_rank))
        assert all(upper < lower for upper, lower in pairwise(places))


def hits_of(a: Assessment) -> list[tuple[Any, ...]]:
    return sorted(columns(a.hit_query, a.hit_first, a.hit_grade, a.hit_repeated))


def columns(*arrays: Any) -> Iterable[tuple[Any, ...]]:
    return zip(*(array.tolist() for array in arrays), strict=True)


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_ties_in_rankings_that_are_cut_and_among_judged_documents_alone(
    name: str, judged_only: bool, data: st.DataObject
) -> None:
    chunks, kernel = METRICS[name].chunks, METRICS[name].kernel
    query, options = data.draw(tied(chunks)), data.draw(options_of(name))
    top_k = data.draw(st.none() | st.integers(1, 8))
    rankings = orders(query.groups)
    seen = assess(rankings, [query.pool] * len(rankings), chunks).upto(top_k)
    every = kernel(seen.judged_only() if judged_only else seen, **options)
    a = assess([query.groups], [query.pool], chunks)
    lowest, highest = bounds(a, kernel, options, judged_only=judged_only, top_k=top_k)
    rel = options.get("rel", 1.0)
    if name == "infAP" and top_k is not None:  # 0 to 1, as the documentation says
        assert lowest[0] <= every.min() <= every.max() <= highest[0]
        return
    assert highest.item() == pytest.approx(every.max(), rel=0, abs=1e-12)
    if is_exact(name, query, rel) or (name == "infAP" and judged_only):
        assert lowest.item() == pytest.approx(every.min(), rel=0, abs=1e-12)
    else:
        assert lowest.item() <= every.min() + 1e-12


def test_of_a_ranking_that_is_cut_infap_is_known_only_without_ties() -> None:
    pool = {"a": 1.0, "b": 0.0}
    a = assess([[["a", "b"], ["c"]], [["a"], ["b"]], [["b"], ["a"]]], [pool] * 3, chunks=False)
    lowest, highest = bounds(a, incomplete.inferred_ap, {}, top_k=2)
    assert (lowest[0], highest[0]) == (0.0, 1.0)
    values = incomplete.inferred_ap(a.upto(2))
    assert lowest[1:].tolist() == highest[1:].tolist() == values[1:].tolist()


@pytest.mark.parametrize("name", METRICS)
def test_unknown_ties_are_refused(name: str) -> None:
    qrels: Qrels = {"q": {"a": 1.0}}
    rows: list[Row] = [("q", "a", 1.0)]
    options = {"cutoff": 1} if METRICS[name].cutoff == "required" else {}
    with pytest.raises(ValueError, match="holds no ties"):
        bounds(assessment_of(qrels, rows), METRICS[name].kernel, options)


def test_rankings_without_hits_score_nothing() -> None:
    a = assess([[["b", "c"]], []], [{"a": 1.0}, {}], chunks=False)
    for name, definition in METRICS.items():
        options = {"cutoff": 1} if definition.cutoff == "required" else {}
        value = definition.kernel(a, **options).tolist()
        assert [bound.tolist() for bound in bounds(a, definition.kernel, options)] == [value, value], name
