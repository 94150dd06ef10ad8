"""Prices in the output of `rankbeam plan`: the cost, or the key that shows it."""

import pytest

from rankbeam.pipelines.experiment.call_settings import CallSettings
from rankbeam.pipelines.plan.counting import CallCounts
from rankbeam.pipelines.plan.plan import Plan
from rankbeam.pipelines.plan.pools import PoolPlan, Range, pool_plans, total_cost
from rankbeam.pipelines.plan.totals import CallTotals, SizeTotal, Step
from rankbeam.transforms.records.calls.quota import Prices, Quota


def model(pool: str, cost: Range | None) -> PoolPlan:
    return PoolPlan(
        pool=pool,
        calls=(10, 20),
        ledger_hits=0,
        calls_without_sharing=20,
        input_tokens=(100.0, 200.0),
        output_tokens=(10.0, 20.0),
        requests_per_minute=60.0,
        tokens_per_minute=None,
        requests=(10, 20),
        seconds=(10.0, 20.0),
        cost=cost,
        steps=(),
    )


def test_pools_of_models_without_a_price_are_named_with_the_key_that_shows_the_cost() -> None:
    models = (model("writer", None), model("judge", (1.0, 2.0)))
    text = Plan((), (), models=models).as_text()
    assert "no price for writer: write price_per_million: {input: …, output: …} under quotas, and plan" in text
    assert "no price for" not in Plan((), (), models=(model("judge", (1.0, 2.0)),)).as_text()


@pytest.mark.parametrize(
    ("quota", "cost"),
    [
        (Quota(60), None),
        (Quota(60, prices=Prices(1.0, 1.0, 1.0)), None),  # the tokens of a retriever's calls are unknown
        (Quota(60, price_per_1000=2.0), (0.2, 0.2)),
    ],
)
def test_calls_without_a_price_have_no_cost_until_none_is_left(quota: Quota, cost: Range | None) -> None:
    def planned(new: int) -> list[PoolPlan]:
        totals = CallTotals({(Step("s", "retrieve"), ""): SizeTotal(calls=300, new=new)})
        counted = CallCounts(totals=(totals, totals), pools={"s": "http"})
        return pool_plans(counted, CallSettings(pools={"idle": Quota(60), "http": quota}))

    assert total_cost(planned(100)) == cost
    assert total_cost(planned(0)) == (0.0, 0.0)
    assert [(pool.pool, pool.ledger_hits) for pool in planned(0)] == [("http", 300)]
