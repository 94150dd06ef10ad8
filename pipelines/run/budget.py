"""`max_cost` before a run: what is planned to cost more at the least is refused before any call."""

from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.pipelines.experiment.experiment import Experiment


def refuse_above_budget(experiment: Experiment, path: str) -> None:
    """Refuse an experiment whose calls cost more than its limit, even if no more are made than there must be."""
    if experiment.max_cost is None:
        return
    from rankbeam.pipelines.run.plan import plan_of  # few experiments have a limit

    cost = plan_of(experiment, path).cost
    if cost is not None and cost[0] > experiment.max_cost:
        problem = (
            f"is {experiment.max_cost:,.6g}, and the calls are planned to cost {cost[0]:,.4g} to {cost[1]:,.4g}: "
            "nothing was asked; raise it, or ask less (`rankbeam plan` says what costs how much)"
        )
        raise load(experiment.text, path).error(("max_cost",), problem)
