"""`quotas:`: which retrievers share a budget, what it is, and every mistake with its line."""

import dataclasses
from pathlib import Path

import pytest
from support.experiments import experiment, load, problems
from support.experiments import folder as folder

from rankbeam.transforms.records.calls.quota import Quota

NEAR = {"near": "retriever: {type: near}"}


def test_a_retriever_has_the_budget_of_its_type(folder: Path) -> None:
    loaded = load(folder, experiment(NEAR))
    assert loaded.calls.pools == {"near": Quota(requests_per_minute=1500, attempts=4)}
    assert [source.pool for source in loaded.evaluation.sources] == ["near"]


def test_a_budget_is_overridden_field_by_field(folder: Path) -> None:
    text = experiment(NEAR, "quotas: {near: {requests_per_second: 2, timeout_s: 5, price_per_1000: 1.5}, words: {}}\n")
    assert load(folder, text).calls.pools == {
        "near": Quota(requests_per_minute=120, timeout_s=5, attempts=4, price_per_1000=1.5)
    }


def test_retrievers_of_one_scope_share_a_pool_and_others_have_the_same_budget(folder: Path) -> None:
    both = {
        "a": "retriever: {type: near}",
        "b": "retriever: {type: near, model: n}",
        "c": "retriever: {type: near, region: r2}",
        "d": "retriever: {type: words}",
        "e": "retriever: {type: run_file, path: old.run}",
    }
    loaded = load(folder, experiment(both, "quotas: {near: {requests_per_minute: 90}}\n"))
    assert [source.pool for source in loaded.evaluation.sources] == ["near:r1", "near:r1", "near:r2", "words", None]
    rates = {name: quota.requests_per_minute for name, quota in loaded.calls.pools.items()}
    assert rates == {"near:r1": 90, "near:r2": 90, "words": 300}


def test_retrievers_of_two_types_share_a_pool_that_they_name(folder: Path) -> None:
    both = {"a": "retriever: {type: near, quota: ours}", "b": "retriever: {type: words, quota: ours}", **NEAR}
    both["near"] = "retriever: {type: near, region: r2}"
    loaded = load(folder, experiment(both, "quotas: {ours: {attempts: 2}}\n"))
    assert [source.pool for source in loaded.evaluation.sources] == ["ours", "ours", "near"]
    assert loaded.calls.pools["ours"] == Quota(requests_per_minute=300, attempts=2)  # the lower of the two defaults


def test_a_reranker_has_the_pool_that_it_names(folder: Path) -> None:
    reranked = "retriever: {type: near}, rerank: {type: http, url: 'http://h/', quota: ours}"
    loaded = load(folder, experiment({"a": reranked}, "quotas: {ours: {attempts: 2}}\n"))
    assert {source.pool for source in loaded.evaluation.sources} == {"near", "ours"}
    assert loaded.calls.pools["ours"].attempts == 2
    (problem,) = problems(folder, experiment({"a": reranked}, "quotas: {near: {}}\n"))
    assert problem == "4: configurations[0].rerank.quota: quotas: has no 'ours'; valid are: near"


@pytest.mark.parametrize(
    ("quota", "lanes"),
    [
        ("requests_per_minute: 60000", 10),
        ("requests_per_minute: 60001", 11),
        ("requests_per_minute: 1, concurrent_calls: 1", 1),
        ("requests_per_minute: 60000, lanes: 2", 2),
        ("requests_per_minute: 24001", 5),
        ("requests_per_minute: 60000, concurrent_calls: 1500", 10),
        ("requests_per_minute: 60000, concurrent_calls: 21", 2),
    ],
)
def test_a_lane_has_no_more_calls_than_a_core_can_make(folder: Path, quota: str, lanes: int) -> None:
    assert load(folder, experiment(NEAR, f"quotas: {{near: {{{quota}}}}}\n")).calls.pools["near"].lanes == lanes


def test_the_ledger_follows_the_output(folder: Path) -> None:
    loaded = load(folder, experiment(NEAR))
    assert loaded.ledger == f"{folder}/out/ledger"
    assert dataclasses.replace(loaded, output="elsewhere").ledger == "elsewhere/ledger"


def test_the_ledger_may_have_its_own_folder(folder: Path) -> None:
    loaded = load(folder, experiment(NEAR, output="{path: out, ledger: ../shared}"))
    assert dataclasses.replace(loaded, output="elsewhere").ledger == loaded.ledger
    assert Path(loaded.ledger).resolve() == folder.parent / "shared"


@pytest.mark.parametrize(("line", "rate"), [("", 0.05), ("max_failure_rate: 0\n", 0.0), ("max_failure_rate: 1\n", 1.0)])
def test_the_failure_rate(folder: Path, line: str, rate: float) -> None:
    assert load(folder, experiment(NEAR, line)).calls.max_failure_rate == rate


MISTAKES = [
    ("max_failure_rate: 1.1\n", "7: max_failure_rate: must be at most 1, found 1.1"),
    ("quotas: {naer: {}}\n", ("7: quotas.naer: is not a service or a remote type, and no retriever names it; "
                             "did you mean 'near'?")),
    ("quotas: {near: {requests_per_minute: 0}}\n",
     "7: quotas.near.requests_per_minute: must be greater than 0, found 0"),
    ("quotas: {near: {request_per_minute: 5}}\n",
     "7: quotas.near.request_per_minute: unknown key; did you mean 'requests_per_minute'?"),
    ("quotas:\n  near:\n    attempts: 0\n",
     "9: quotas.near.attempts: must be at least 1, found 0"),
    (
        "quotas: {near: {requests_per_minute: 120, lanes: 3}}\n",
        "7: quotas.near.lanes: each needs a call a second, and one in flight: 2 at most, found 3",
    ),
    ("quotas: {near: {lanes: 1.5}}\n", "7: quotas.near.lanes: must be a whole number, found 1.5"),
    ("quotas: {near: {requests_per_minute: .inf}}\n",
     "7: quotas.near.requests_per_minute: must be a finite number, found inf"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), MISTAKES)
def test_a_mistake(folder: Path, lines: str, expected: str) -> None:
    assert problems(folder, experiment(NEAR, lines)) == [expected]


def test_two_rates_are_refused(folder: Path) -> None:
    (problem,) = problems(
        folder, experiment(NEAR, "quotas: {near: {requests_per_minute: 60, requests_per_second: 1}}\n")
    )
    assert problem.startswith("7: quotas.near: has requests_per_minute and requests_per_second; give one of them")


@pytest.mark.parametrize("kind", ["run_file", "bm25"])
def test_what_is_not_remote_has_no_quota(folder: Path, kind: str) -> None:
    (problem,) = problems(folder, experiment(NEAR, f"quotas: {{{kind}: {{}}}}\n"))
    assert problem.startswith(f"7: quotas.{kind}: is not a service or a remote type")


def test_a_pool_that_is_named_must_be_there(folder: Path) -> None:
    text = experiment({"a": "retriever: {type: near, quota: our}"}, "quotas: {ours: {}}\n")
    first, second = problems(folder, text)
    assert first == "4: configurations[0].retriever.quota: quotas: has no 'our'; did you mean 'ours'?"
    assert second.startswith(
        "7: quotas.ours: is not a service or a remote type, and no retriever names it; did you mean 'our'?"
    )
