"""The steps of the judge by name: those of rankbeam, and those of other packages."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint

from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.judging.steps import JudgeStep
from rankbeam.transforms.records.plug_ins import entry_points_of, load_plug_in, plug_in_label

GROUP = "rankbeam.judged"

_REGISTERED: dict[str, JudgeStep] = {}


def register(*steps: JudgeStep) -> None:
    _REGISTERED.update({step.name: step for step in steps})


def step_of(name: str) -> JudgeStep | None:
    """The judge's step of that name, or None. A criterion's step has the criterion's name after a colon."""
    name = name.partition(":")[0]
    return _REGISTERED.get(name) or (_plugged_in(name) if name in plug_ins() and not is_metric(name) else None)


def is_metric(name: str) -> bool:
    """Return whether an entry point is a metric: its name begins with a capital letter; a step's does not."""
    return name[:1].isupper()


def plug_ins() -> Mapping[str, EntryPoint]:
    """The entry points of the group `rankbeam.judged`, by name."""
    return entry_points_of(GROUP)


def plugged_metrics() -> list[str]:
    """The names of other packages' metrics, which are not loaded."""
    return [name for name in sorted(plug_ins()) if is_metric(name)]


@cache
def plugged_steps() -> tuple[JudgeStep, ...]:
    return tuple(_plugged_in(name) for name in sorted(plug_ins()) if not is_metric(name))


@cache
def _plugged_in(name: str) -> JudgeStep:
    step = load_plug_in(GROUP, name)
    if not (isinstance(step, type) and issubclass(step, JudgeStep)):
        problem = "is not a subclass of JudgeStep; the name of a metric begins with a capital letter"
        raise InputError(f"{plug_in_label(GROUP, name)}: {plug_ins()[name].value} {problem}")
    if getattr(step, "name", "") != name:
        problem = f"the step of {plug_ins()[name].value} has another name; use one for both"
        raise InputError(f"{plug_in_label(GROUP, name)}: {problem}")
    if name in _REGISTERED:
        raise InputError(f"{plug_in_label(GROUP, name)}: rankbeam has a step of that name; choose another")
    return step()
