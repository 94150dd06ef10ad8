"""Metrics of agents: steps as they travel, values and reasons, whatever of them is absent."""

from itertools import product
from typing import Any

from rankbeam.transforms.judge.answering import Answerer
from rankbeam.transforms.judge.metrics import parse_judged
from rankbeam.transforms.judge.work import EvaluateAnswers
from rankbeam.transforms.records.calls.quota import Prices, Quota
from rankbeam.transforms.records.calls.steps import without_calls
from rankbeam.transforms.records.judging.items import Gold, Item, System, batch_of, items_in
from rankbeam.transforms.records.rankings.contexts import SuppliedAnswer
from rankbeam.transforms.records.reply import Tokens
from rankbeam.transforms.records.trajectories import AgentSteps, Consumption, steps_in

FIND = {"tool": "find", "args": {"q": "invoices"}, "doc_ids": ["a", "b"], "status": "ok"}
TELL = {"tool": "tell", "args": {"to": "owner", "n": 1.0}}
STEPS = (None, [], [FIND], [FIND, TELL], [TELL, FIND])
EXPECTED = (
    None,
    [],
    [{"name": "find", "arguments": '{"q": "invoices"}'}, {"tool_name": "tell", "tool_input": {"n": 1}}],
)
TOKENS = (Tokens(), Tokens(100, 0, 10), Tokens(input=100), Tokens(output=10))
PRICES = (None, Quota(60, price_per_1000=2.0), Quota(60, prices=Prices(1.0, 1.0, 10.0)))
METRICS = ("TrajectoryExact(args=subset)", "TrajectoryRecall(args=ignore)", "TrajectoryPrecision", "Steps",
           "Retrievals", "Tokens", "InputTokens", "OutputTokens", "Cost", "Seconds")  # fmt: skip


def parsed(value: Any) -> AgentSteps | None:
    return None if value is None else steps_in(value)


def values(
    steps: Any, expected: Any, tokens: Tokens, quota: Quota | None, problem: str | None = None
) -> dict[str, Any]:
    system = System(
        0,
        (),
        False,
        SuppliedAnswer(
            None if problem else "Owners pay.", problem, True, Consumption(tokens, 2.5, attempts=1), parsed(steps)
        ),
    )
    (item,) = items_in(batch_of([Item("q", "Who?", {}, (), (system,), Gold(expected_steps=parsed(expected)))]))
    answerers = {} if quota is None else {0: Answerer(quota=quota)}
    work = EvaluateAnswers({}, (), {0: tuple(map(parse_judged, METRICS))}, answerers=answerers)
    evaluated = without_calls(work.steps(item))
    return {value.metric: value.reason if value.value is None else value.value for value in evaluated.values}


def plain(steps: Any, expected: Any, tokens: Tokens, quota: Quota | None) -> dict[str, Any]:
    tools = None if steps is None else [step["tool"] for step in steps]
    of_all = "no_expected_steps" if expected is None else None
    of_all = "steps_not_given" if tools is None else of_all
    has_tokens = bool(tokens.input and tokens.output)
    cost: Any = "cost_not_known" if quota is None or (quota.prices and not has_tokens) else 0.002
    cost = 200 / 1e6 if quota is not None and quota.prices and has_tokens else cost
    common = sum(tool in ("find", "tell") for tool in tools or ()) if expected else 0
    equal = sum(tool == "find" for tool in tools or ()) if expected else 0  # the arguments of `tell` differ
    return {
        METRICS[0]: of_all or float(tools == [entry.get("name") or entry["tool_name"] for entry in expected]),
        METRICS[1]: of_all or (common / 2 if expected else "no_steps_expected"),
        METRICS[2]: of_all or (equal / len(tools) if tools else "no_steps"),
        "Steps": "steps_not_given" if tools is None else len(tools),
        "Retrievals": "steps_not_given" if tools is None else tools.count("find"),
        "Tokens": 110 if has_tokens else "tokens_not_given",
        "InputTokens": 100 if tokens.input else "tokens_not_given",
        "OutputTokens": 10 if tokens.output else "tokens_not_given",
        "Cost": cost, "Seconds": 2.5,
    }  # fmt: skip


def test_every_metric_has_its_value_or_its_reason_whatever_is_absent() -> None:
    for steps, expected, tokens, quota in product(STEPS, EXPECTED, TOKENS, PRICES):
        assert values(steps, expected, tokens, quota) == plain(steps, expected, tokens, quota)


def test_an_agent_that_failed_has_failed_values() -> None:
    results = values(None, [FIND], Tokens(), None, problem="no answer")
    assert set(results) == set(METRICS)
    assert all("not judged" in reason for reason in results.values())


def test_the_canonical_name_says_how_arguments_are_compared() -> None:
    assert [str(parse_judged(f"trajectoryrecall(args={rule})")) for rule in ("equal", "ignore", "subset")] == [
        "TrajectoryRecall", "TrajectoryRecall(args=ignore)", "TrajectoryRecall(args=subset)",
    ]  # fmt: skip


def test_equal_samples_have_the_mean_of_one() -> None:
    """The mean of three samples that took 0.7 s was 0.6999999999999998 s, and won against one sample."""
    system = System(0, (), False, SuppliedAnswer("Owners pay.", consumption=Consumption(seconds=0.7)))
    work = EvaluateAnswers({}, (), {0: (parse_judged("Seconds"),)})
    (value,) = without_calls(work.steps(Item("q", "Who?", {}, (), (system,) * 3, Gold()))).values
    assert value.value == 0.7
