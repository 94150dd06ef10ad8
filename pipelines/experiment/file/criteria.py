"""`criteria:` of `judge:`: a user's own questions about what configurations return."""

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError, field_validator

from rankbeam.pipelines.config.sections import Section, Word, problems_of
from rankbeam.pipelines.config.yaml_lines import Place, YamlDocument, load
from rankbeam.transforms.clients.formats.syntax import json_lines
from rankbeam.transforms.clients.formats.syntax.ids import as_text
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.judge.metrics import is_judged
from rankbeam.transforms.records.errors import InputError, InputErrors, did_you_mean
from rankbeam.transforms.records.judging.criteria import PREFERENCES, Criterion, levels_of, shown
from rankbeam.transforms.records.metrics.definitions import metric_names

Part = Literal["query", "answer", "reference", "context", "contexts"]
_TEXT_FILE = ".txt"
_STATEMENT = "Is the statement true of the other texts? Judge it by these texts alone, word by word."


class RubricsModel(Section):
    """Statements of each query under `rubrics:`.

    Attributes:
        attribute: attribute of the queries that holds the statements, a list of strings or one a line.
    """

    attribute: Word


class CriterionModel(Section):
    """One criterion under `judge: criteria:`, whose name is a metric.

    Attributes:
        question: question to the judge, or a text file that contains it. It can have several lines, to explain when
            each verdict is right.
        about: texts that the judge is shown: query, answer, reference, contexts (all of them), or context (each alone,
            and the value is the mean over contexts).
        scale: verdicts to choose from: a range of grades such as `0..3`, where the value of a grade is its share of the
            way to the highest, or a mapping of each verdict to its value from 0 to 1.
        examples: JSON lines with correct verdicts to show the judge: the texts of `about`, `verdict` and `reason`.
        rubrics: statements of each query that are judged one by one, `{attribute: NAME}`; the value is the share of
            statements that are true.
        pairs: compare each answer, in both orders, with the baseline's answer (`baseline`) or with the answers of all
            configurations (`all`).
        lower_is_better: if true, lower values are better, as when the question is about a flaw.
    """

    bare: ClassVar[tuple[str, type] | None] = ("question", str)

    question: Word | None = None
    about: Annotated[list[Part], Field(min_length=1)] = Field(default=["query", "answer"])
    scale: str | dict[str, float] = Field(default={"yes": 1.0, "no": 0.0})
    examples: Word | None = None
    rubrics: RubricsModel | None = None
    pairs: Literal["baseline", "all"] | None = None
    lower_is_better: bool = False

    @field_validator("scale", mode="before")
    @classmethod
    def _is_a_scale(cls, scale: Any) -> Any:
        if not isinstance(scale, str | Mapping):
            raise ValueError("is not a scale; write 0..3, or each verdict with its value: {yes: 1, no: 0}")
        return scale


def criteria_of(located: YamlDocument, models: Mapping[str, CriterionModel], folder: str) -> dict[str, Criterion]:
    criteria: dict[str, Criterion] = {}
    for name, model in models.items():
        place, stated = ("judge", "criteria", name), model.model_fields_set
        is_mapping = isinstance(located.value["judge"]["criteria"][name], dict | str)
        if not is_mapping or not model.about or ("question" in stated and not model.question):
            continue  # reported already
        if not name.isidentifier() or not name[0].isupper():
            located.report(place, "is not a name; begin with a capital letter, such as Tone")
        elif name.lower() in {known.lower() for known in criteria}:
            located.report(place, "differs from another criterion only in case; rename one")
        elif is_judged(name) or name.lower() in {known.lower() for known in metric_names()}:
            located.report(place, f"is the name of another metric; choose one that is not {name}")
        elif contradictions := list(_contradictions(model, stated)):
            located.problems.extend(located.error((*place, key), problem) for key, problem in contradictions)
        else:
            key = "scale"
            try:
                levels = PREFERENCES if model.pairs else levels_of(model.scale)
                key = "question"
                question = _STATEMENT if model.question is None else _question(model.question, folder)
                rubrics = None if model.rubrics is None else model.rubrics.attribute
                criterion = Criterion(
                    name,
                    question,
                    tuple(model.about),
                    levels,
                    rubrics=rubrics,
                    pairs=model.pairs,
                    lower_is_better=model.lower_is_better,
                )
                key = "examples"
                criteria[name] = replace(criterion, examples=_examples(model.examples, folder, criterion))
            except (InputError, ValueError) as error:
                located.report((*place, key), str(error))
    return criteria


class _CriteriaFile(Section):
    """A file of criteria alone, at the position that they have in an experiment."""

    criteria: Annotated[dict[str, CriterionModel], Field(min_length=1)]


def read_criteria(path: str) -> dict[str, Any]:
    """The criteria in a YAML file, written as in `judge: criteria:` of an experiment, but without file names."""
    located = load(files.read_text(path, encoding="utf-8-sig"), path)
    if not isinstance(located.value, dict):
        raise InputError("is not a mapping of criteria; write NAME: QUESTION for each", path=path)
    located.problems.extend(located.duplicate_keys())
    try:
        models = _CriteriaFile.model_validate({"criteria": located.value}).criteria
    except ValidationError as error:
        nested = replace(located, value={"criteria": located.value}, lines=_below(located, "criteria"))
        located.problems.extend(problems_of(nested, _CriteriaFile, error))
        raise InputErrors(located.problems) from error
    lines = _below(located, "judge", "criteria")
    as_in_experiment = replace(located, value={"judge": {"criteria": located.value}}, lines=lines)
    folder = located.folder
    criteria = criteria_of(as_in_experiment, models, folder)
    if located.problems:
        raise InputErrors(located.problems)
    result: dict[str, Any] = {}
    for name, value in located.value.items():
        stated = {"question": value} if isinstance(value, str) else value
        texts = {"question": criteria[name].question} if "question" in stated else {}
        texts |= {"examples": files.absolute(files.below(folder, stated["examples"]))} if "examples" in stated else {}
        result[name] = {**stated, **texts}
    return result


def _below(located: YamlDocument, *place: str) -> dict[Place, int]:
    return {(*place, *inner): line for inner, line in located.lines.items()}


def _contradictions(model: CriterionModel, stated: Set[str]) -> Iterator[tuple[str, str]]:
    """Keys of a criterion that contradict each other, each with the problem."""
    about = set(model.about)
    if "question" not in stated and "rubrics" not in stated:
        yield "question", "is missing"
    if len(about) < len(model.about) or {"context", "contexts"} <= about:
        yield "about", "names a text twice; keep one of them"
    if "pairs" not in stated:
        return
    if "rubrics" in stated:
        yield "pairs", "compares answers, but rubrics judge each answer alone; remove one of the two"
    if "scale" in stated:
        yield "scale", f"would not be used: the verdicts of pairs are {', '.join(word for word, _ in PREFERENCES)}"
    if "answer" not in about or about & {"context", "contexts"}:
        yield "about", "names texts that pairs cannot use; pairs use query, answer and reference"


def _examples(named: str | None, folder: str, criterion: Criterion) -> str:
    """The examples in a file, as the judge reads them."""
    if named is None:
        return ""
    path, verdicts = files.below(folder, named), [word for word, _ in criterion.levels]
    parts, known = [], dict[str, tuple[str, int]]()
    for line, text in json_lines.numbered_lines(path):
        row = json_lines.parse_line(path, line, text)
        stated = row if isinstance(row, dict) else {}
        if stated.keys() != {*criterion.texts, "verdict", "reason"}:
            keys = ", ".join((*criterion.texts, "verdict", "reason"))
            raise InputError(f"expected an object with {keys}", path=path, line=line)
        if (verdict := as_text(stated["verdict"])) not in verdicts:
            hint = did_you_mean(verdict, verdicts)
            raise InputError(f"verdict {verdict!r} is not on the scale; {hint}", path=path, line=line)
        contexts = stated.get("contexts", [])
        numbered = [(f"context {rank}", entry) for rank, entry in enumerate(contexts, start=1)]
        texts = [*((part, stated[part]) for part in criterion.texts if part != "contexts"), *numbered]
        strings = [stated["reason"], *(entry for _, entry in texts)]
        if not isinstance(contexts, list) or not all(isinstance(entry, str) for entry in strings):
            raise InputError("texts and reasons are strings, contexts lists of strings", path=path, line=line)
        example = shown(texts)
        first, first_line = known.setdefault(example, (verdict, line))
        if first != verdict:
            problem = f"verdict {verdict!r} contradicts line {first_line}, which has the same texts; keep one"
            raise InputError(problem, path=path, line=line)
        parts.append(f"{example}\nreason: {stated['reason']}\nverdict: {verdict}")
    if not parts:
        raise InputError("holds no example", path=path)
    return "\n\n".join(("\nExamples of right verdicts on other texts:", *parts)) + "\n"


def _question(text: str, folder: str) -> str:
    if not text.strip():
        raise InputError("is blank; write the question")
    if not text.endswith(_TEXT_FILE) or "\n" in text or " " in text:
        return text.strip()
    path = files.below(folder, text)
    if not (question := files.read_text(path).strip()):
        raise InputError("is empty; write the question", path=path)
    return question
