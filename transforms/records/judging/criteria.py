"""A user's criteria: a question about what a configuration returned, and the verdicts to choose from."""

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

CRITERION = "Criterion"  # base name of the metrics of criteria: `Criterion(Tone)`
STATEMENT = "statement"  # the text that rubrics add: one of the query's statements
ANSWERS = ("answer 1", "answer 2")  # the texts of a criterion that compares two answers
PREFERENCES = ((ANSWERS[0], 1.0), ("tie", 0.0), (ANSWERS[1], -1.0))
"""The verdicts of that criterion, with the value for the first answer."""

_RANGE = re.compile(r"(?P<low>\d{1,3})\s*\.\.\s*(?P<high>\d{1,3})")
_NAME = re.compile(rf"{CRITERION}\((?P<name>\w+)")
_SHORT = re.compile(r"\s*(?P<name>\w+)\s*(?:\((?P<options>[^()]*)\))?\s*(?P<cutoff>@.*)?")


@dataclass(frozen=True)
class Criterion:
    """One criterion."""

    name: str
    question: str
    about: tuple[str, ...]  # the texts that the judge is shown; each `context` is judged alone
    # Every verdict and its value from 0 to 1, in the order in which the judge reads them.
    levels: tuple[tuple[str, float], ...]
    examples: str = ""  # right verdicts, as the judge reads them; empty for none
    # The queries' attribute with statements that are judged one by one; None for a question alone.
    rubrics: str | None = None
    # "baseline" or "all", if the answer is compared with the baseline's or with all others; else None.
    pairs: str | None = None
    lower_is_better: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the texts that the judge is shown.

        >>> Criterion("Better", "Which is better?", ("query", "answer"), PREFERENCES, pairs="baseline").texts
        ('query', 'answer 1', 'answer 2')
        """
        compared = [name for part in self.about for name in (ANSWERS if part == "answer" else (part,))]
        return (*([STATEMENT] if self.rubrics else []), *(compared if self.pairs else self.about))

    @property
    def step(self) -> str:
        return step_named(self.name)


def shown(texts: Iterable[tuple[str, str]]) -> str:
    """Named texts as an example shows them to the judge.

    >>> shown([("query", "who?"), ("answer", "Owners.")])
    '(query) who?\\n(answer) Owners.'
    """
    return "\n".join(f"({name}) {text}" for name, text in texts)


def step_named(name: str) -> str:
    """The name in tables of a criterion's judgements."""
    return f"criterion:{name}"


def levels_of(scale: str | Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """The verdicts of a scale, with their values: of a range such as `0..3`, shares of the way to the highest.

    >>> levels_of("1..3"), levels_of({"yes": 1, "no": 0})
    ((('1', 0.0), ('2', 0.5), ('3', 1.0)), (('yes', 1.0), ('no', 0.0)))
    """
    if isinstance(scale, str):
        match = _RANGE.fullmatch(scale.strip())
        low, high = (int(match["low"]), int(match["high"])) if match else (0, 0)
        if not low < high <= low + 100:
            raise ValueError(f"{scale!r} is not a scale; write 0..3, or each verdict with its value: {{yes: 1, no: 0}}")
        return tuple((str(grade), (grade - low) / (high - low)) for grade in range(low, high + 1))
    levels = tuple((word.strip(), float(value)) for word, value in scale.items())
    if len({value for _, value in levels}) < 2:
        raise ValueError("a scale needs verdicts of at least two different values")
    if wrong := [word for word, value in levels if not (math.isfinite(value) and 0.0 <= value <= 1.0)]:
        raise ValueError(f"the value of {wrong[0]!r} is not from 0 to 1")
    if wrong := [word for word, _ in levels if not word or "|" in word or "\n" in word]:
        raise ValueError(f"{wrong[0]!r} is not a verdict; write one or more words, without | and line breaks")
    if len({word for word, _ in levels}) < len(levels):
        raise ValueError("a verdict is given twice; keep one")
    return levels


def statements_of(text: str) -> tuple[str, ...]:
    """The statements of a query's rubrics, each once: a JSON list of strings, or one statement per line.

    >>> statements_of('["It names a date.", "It is short."]') == statements_of("It names a date.\\n It is short. ")
    True
    """
    entries: object = text.splitlines()
    if text.lstrip().startswith(("[", "{")):
        try:
            entries = json.loads(text)
        except ValueError as error:
            raise ValueError("is not a JSON list; write a list of strings, or one statement per line") from error
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise ValueError("is not a list of strings; each statement is a string")
    return tuple(dict.fromkeys(entry.strip() for entry in entries if entry.strip()))


def criteria_in(metrics: Iterable[str]) -> list[str]:
    """The criteria that the names of metrics contain.

    >>> criteria_in(["nDCG@10", "Criterion(Tone)", "Criterion(Ads,judge=lexical)@5"])
    ['Tone', 'Ads']
    """
    return list(dict.fromkeys(match["name"] for match in map(_NAME.match, metrics) if match is not None))


def full_metric_name(metric: str, criteria: Collection[str]) -> str:
    """A metric's name, with that of a criterion in full.

    >>> [full_metric_name(name, ["Tone"]) for name in ("Tone", "Tone@5", "Tone(judge=lexical)", "AP")]
    ['Criterion(Tone)', 'Criterion(Tone)@5', 'Criterion(Tone,judge=lexical)', 'AP']
    """
    match = _SHORT.fullmatch(metric)
    if match is None or match["name"] not in criteria:
        return metric
    return f"{CRITERION}({','.join(filter(None, (match['name'], match['options'])))}){match['cutoff'] or ''}"
