"""Refuse calls that cost more than a limit, before the first one is made."""

from collections.abc import Mapping
from dataclasses import replace

import click

from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.plan.plan import plan_of
from rankbeam.pipelines.plan.pools import Range, format_range, lines_of
from rankbeam.pipelines.plan.simulation import has_changed_prompts
from rankbeam.pipelines.run.folders import prepared_folders
from rankbeam.transforms.records.errors import InputError


def refuse_cost(limit: float | None, cost: Range | None, text: str, path: str | None, advice: str = "") -> None:
    """Refuse calls that cost more than `max_cost` of a file, even at the least."""
    if limit is None or cost is None or cost[0] <= limit:
        return
    problem = f"is {limit:,.6g}, and the calls are planned to cost {format_range(cost, '{:,.4g}')}: no call was made"
    raise load(text, path).error(("max_cost",), f"{problem}; raise it{advice}")


def refuse_above_budget(experiment: Experiment, path: str) -> tuple[str, ...]:
    """Refuse an experiment whose lowest forecast is above `max_cost`.

    Returns sentences about verdicts that are bought again, forecast only if the last run had other prompts or parts.
    """
    if experiment.calls.max_cost is None and not has_changed_prompts(experiment):
        return ()
    plan = plan_of(experiment, path)
    advice = ", or make fewer calls (`rankbeam plan` shows what each part costs)"
    refuse_cost(experiment.calls.max_cost, plan.cost, experiment.text, path, advice)
    return tuple(again.line() for again in plan.again)


def check_plan(experiment: Experiment, limits: Mapping[str, int | None], *, confirm: bool = False) -> None:
    """Print the plan of an experiment with models; refuse it if it exceeds a limit or is not confirmed."""
    is_free = all(service.parameters.offline is not None for service in experiment.calls.services.values())
    if is_free and all(limit is None for limit in limits.values()):
        return
    with prepared_folders(replace(experiment, is_private=False)):
        plan = plan_of(experiment)
    lines = [line for model in plan.models for line in lines_of(model)]
    click.echo("\n".join([*lines, *(again.line() for again in plan.again)]), err=True)
    calls = sum(model.calls[1] - model.ledger_hits for model in plan.models)
    tokens = sum(model.input_tokens[1] + model.output_tokens[1] for model in plan.models)
    for name, planned in (("calls", calls), ("tokens", tokens)):
        if (limit := limits[name]) is not None and planned > limit:
            raise InputError(
                f"max_{name} is {limit:,}, and up to {planned:,.0f} {name} are planned: no call was made; raise "
                "the limit, or judge fewer rows or metrics"
            )
    if confirm and calls and not click.confirm("Make these calls?", err=True):
        raise InputError("not confirmed: no call was made")
