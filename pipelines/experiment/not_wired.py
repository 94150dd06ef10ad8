"""Keys of an experiment that no stage implements yet: refused, so that no run ignores them silently."""

from collections.abc import Iterator

from rankbeam.pipelines.config.yaml_lines import Located, load
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.transforms.records.errors import InputError, InputErrors

_PROBLEM = "no stage of this version of rankbeam does this yet; leave it out"


def refuse(experiment: Experiment, path: str) -> None:
    """Refuse a valid experiment with keys that no stage implements.

    Raises:
        InputErrors: there are such keys, with their lines.
    """
    if problems := list(_problems(load(experiment.text, path))):
        raise InputErrors(sorted(problems, key=lambda problem: problem.line or 0))


def _problems(located: Located) -> Iterator[InputError]:
    for key in ("max_cost",):
        if key in located.value:
            yield located.error((key,), _PROBLEM)
