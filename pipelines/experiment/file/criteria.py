"""`criteria:` of `judge:`: questions of the user's own about what configurations return."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.experiment.file.keys import Section, Word
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.judge.metrics import is_judged
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.judging.criteria import Criterion, levels_of
from rankbeam.transforms.records.metrics.definitions import metric_names

Part = Literal["query", "answer", "reference", "context", "contexts"]
_TEXT_FILE = ".txt"


class CriterionModel(Section):
    """One criterion under `judge: criteria:`, whose name is a metric.

    Attributes:
        question: question to the judge, or a text file that holds it. With several lines it can say when each verdict
            is right.
        about: texts that the judge is shown: query, answer, reference, contexts (all of them), or context (each alone,
            and the value is the mean over contexts).
        scale: verdicts to choose from: a range of grades such as `0..3`, whose value is the share of the way to the
            highest, or a mapping of each verdict to its value from 0 to 1.
    """

    question: Word
    about: Annotated[list[Part], Field(min_length=1)] = Field(default=["query", "answer"])
    scale: str | dict[str, float] = Field(default={"yes": 1.0, "no": 0.0})


def criteria_of(
    located: Located, models: Mapping[str, CriterionModel] | None, folder: str, problems: list[InputError]
) -> dict[str, Criterion]:
    """The valid criteria of an experiment, by name."""
    criteria = {}
    for name, model in (models or {}).items():
        place = ("judge", "criteria", name)
        if not name.isidentifier() or not name[0].isupper():
            problems.append(located.error(place, "is not a name; begin with a capital letter, such as Tone"))
        elif is_judged(name) or name.lower() in {known.lower() for known in metric_names()}:
            problems.append(located.error(place, f"is the name of another metric; choose one that is not {name}"))
        else:
            try:
                levels = levels_of(model.scale)
            except ValueError as error:
                problems.append(located.error((*place, "scale"), str(error)))
                continue
            if len(set(model.about)) < len(model.about) or {"context", "contexts"} <= set(model.about):
                problems.append(located.error((*place, "about"), "names a text twice; keep one of them"))
                continue
            try:
                question = _question(model.question, folder)
            except InputError as error:
                problems.append(located.error((*place, "question"), str(error)))
                continue
            criteria[name] = Criterion(name, question, tuple(model.about), levels)
    return criteria


def _question(text: str, folder: str) -> str:
    if not text.endswith(_TEXT_FILE) or "\n" in text or " " in text:
        return text.strip()
    path = files.below(folder, text)
    try:
        question = files.read_all(path).decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8", path=path) from error
    if not question:
        raise InputError("is empty; write the question", path=path)
    return question
