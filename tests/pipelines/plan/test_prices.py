"""Prices in the output of `rankbeam plan`: the cost, or the key that shows it."""

from rankbeam.pipelines.plan.plan import Plan
from rankbeam.pipelines.plan.pools import PoolPlan, Range


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
