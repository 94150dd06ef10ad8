"""Metric names, as ir_measures writes them: `nDCG@10`, `P(rel=2)@5`, `nDCG(gain=exp)@10`, `SpanRecall@2000t`.

A metric's identity is its canonical name: aliases are resolved, options have one order, and default options
are left out. `definitions` lists every metric with its formula (a kernel).
"""

import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking import metrics as kernels
from rankbeam.transforms.kernels.ranking.rankings import Assessment
from rankbeam.transforms.records.errors import InputError, did_you_mean, did_you_mean_among
from rankbeam.transforms.records.holes import LLM
from rankbeam.transforms.records.metrics.definitions import (
    ALIASES,
    METRICS,
    SUBTOPIC_METRICS,
    MetricDefinition,
    definition_named,
    families,
    metric_names,
)
from rankbeam.transforms.records.metrics.other_tools import (
    canonical_gains,
    meant_by,
    option_here,
    plain,
    refuse_foreign,
    refuse_homonym,
)

DEFAULT_METRICS = ("nDCG@10", "R@100", "RR@10", "AP")  # the metrics of an experiment that names none

Option = float | str | bool

HOLES = "holes"  # the option of metrics that count documents without a judgement of people by a judge's grades

_HIGHEST_GRADES: Mapping[Option, float] = {"linear": 1e290, "exp": 990.0}
"""The highest grade by gain: the sum of billions of such gains is still less than 2^1024."""

_MOST = 999_999_999
_LEVELS = {"iprec": "recall"}
"""Metrics that have a level after `@`, as in ir_measures' `IPrec@0.1`: the option that it sets."""
_FORM = "write it as nDCG@10, AP or P(rel=2)@5"
_NAME = re.compile(
    r"^\s*+(?P<name>[A-Za-zα_0-9][A-Za-z_0-9-]*)\s*+(?:\((?P<options>.*)\)\s*+)?(?:@\s*+(?P<cutoff>[^\s,]+)\s*+)?$"
)
_OPTION = re.compile(r"(?:\{[^{}]*\}|[^,])+")  # between commas, those in braces apart
_PART = re.compile(r"(?:\([^()]*\)|[^,\s])+")  # between commas and blanks, those in brackets apart
OTHER_NAMES = "other names"  # the family of aliases and of trec_eval's names, in messages
_HIGHEST_OPTION = 1e15
_RANGES = {
    "rel": (0.0, 1e9),  # a document of grade 0 is not relevant, but "any judged document" is rel=0
    "p": (0.0, 1.0),
    "recall": (0.0, 1.0),
    "beta": (0.0, 1e9),
    "alpha": (0.0, 1.0),
    "max_rel": (1.0, 60.0),
}
_RANGES_OF_RANKINGS = {
    **_RANGES,
    "multiple": (0.0, 1e9),
    "T": (0.5, 1e9),  # below, INST would go on with a probability above 1
    "min_rel": (0.0, 59.0),
}
_RANGES_OF_SUBTOPICS = {**_RANGES, "beta": (0.0, 1.0)}


@dataclass(frozen=True)
class ParsedName:
    """A name in its parts."""

    name: str
    options: tuple[tuple[str, str | None], ...]
    cutoff: int | None
    in_tokens: bool = False  # the cutoff is a number of tokens, as in `SpanRecall@2000t`


def split_name(text: str) -> ParsedName:
    """Split a metric's name into its parts.

    >>> split_name("nDCG( gain = exp )@10")
    ParsedName(name='nDCG', options=(('gain', 'exp'),), cutoff=10, in_tokens=False)
    >>> split_name("Faithfulness(ragas,judge=lexical)").options
    (('ragas', None), ('judge', 'lexical'))
    """
    match = _NAME.match(text)
    if match is None:
        raise InputError(f"{text!r} is not a metric; {_advice(text)}")
    options: dict[str, str | None] = {}
    for item in filter(None, map(str.strip, _OPTION.findall(match["options"] or ""))):
        option, equals, value = (part.strip() for part in item.partition("="))
        if option in options:
            raise InputError(f"metric {text!r}: the option {option!r} is given twice; keep one")
        options[option] = value if equals else None
    cutoff = match["cutoff"]
    if cutoff is not None and (level := _LEVELS.get(match["name"].lower())):
        if level in options:
            raise InputError(f"metric {text!r}: the option {level!r} is given twice; keep one")
        options[level], cutoff = cutoff, None
    in_tokens = cutoff is not None and cutoff.endswith("t")
    return ParsedName(
        match["name"], tuple(options.items()), _cutoff(text, cutoff[:-1] if in_tokens else cutoff), in_tokens
    )


def _advice(text: str) -> str:
    parts = _PART.findall(text)
    for place, part in enumerate(parts[1:], start=1):
        if part.isdecimal():  # "nDCG@5,10"
            parts[place] = f"{parts[place - 1].partition('@')[0]}@{part}"
    if len(parts) < 2 or not all(_NAME.match(part) and ("," in text or not part.islower()) for part in parts):
        return _FORM
    *first, last = parts
    return f"write each metric on its own: {', '.join(first)} and {last} (-m {' -m '.join(map(shlex.quote, parts))})"


def _cutoff(text: str, written: str | None) -> int | None:
    if written is None:
        return None
    if not written.isdecimal() or len(written) > len(str(_MOST)) or int(written) < 1:
        raise InputError(f"metric {text!r}: the cutoff {written!r} is not a positive whole number up to {_MOST:,}")
    return int(written)


@cache
def _by_plain() -> Mapping[str, str]:
    return {plain(name): name for name in metric_names()} | {plain(alias): name for alias, name in ALIASES.items()}


@dataclass(frozen=True)
class Metric:
    """One metric with its options and cutoff."""

    name: str
    options: tuple[tuple[str, Option], ...] = field(default=())
    cutoff: int | None = None  # the number of ranks that count; None for all
    judged_only: bool = False
    budget: int | None = None  # the number of tokens that count, for metrics of spans; None for all
    holes: bool = False  # documents that people have not judged count by the judge's grades
    lowest: ClassVar[float] = 0.0  # that a query can have
    # The resolution without an upper bound, 2^-bits: finer than 1 even for counts, as a test rounds by one such unit.
    bits: ClassVar[int] = 20
    labels: ClassVar[bool] = False

    def __str__(self) -> str:
        """The canonical name, such as `P(rel=2)@5`."""
        written = [f"{name}={_format_option(value)}" for name, value in self.options]
        written += ["judged_only=True"] * self.judged_only + [f"{HOLES}={LLM}"] * self.holes
        options = f"({','.join(written)})" if written else ""
        cut = f"@{self.cutoff}" if self.cutoff is not None else "" if self.budget is None else f"@{self.budget}t"
        return f"{self.name}{options}{cut}"

    def exceeds(self, top_k: int | None) -> bool:
        """Return whether its cutoff exceeds the number of documents: R@100 of ten documents is R@10."""
        return top_k is not None and self.cutoff is not None and self.cutoff > top_k

    @property
    def definition(self) -> MetricDefinition:
        return definition_named(self.name)

    @property
    def highest(self) -> float | None:
        return self.definition.highest

    @property
    def lower_is_better(self) -> bool:
        return self.definition.lower_is_better

    def with_default(self, option: str, value: Option) -> "Metric":
        """The same metric with an option set, if it has that option and leaves it at its default.

        >>> str(parse_metric("P@5").with_default("rel", 2.0)), str(parse_metric("nDCG@5").with_default("rel", 2.0))
        ('P(rel=2)@5', 'nDCG@5')
        """
        options = dict(self.options)
        has_no_effect = option == "rel" and options.get("graded") is True  # the grades themselves count
        if option not in self.definition.options or option in options or has_no_effect:
            return self
        changed = _checked_metric(self.name, {**options, option: value}, self.cutoff, self.judged_only)
        return replace(changed, budget=self.budget, holes=self.holes)

    @property
    def arguments(self) -> dict[str, Any]:
        cuts = {"cutoff": self.cutoff, "budget": self.budget}
        return {**dict(self.options), **{name: cut for name, cut in cuts.items() if cut is not None}}

    @property
    def highest_grade(self) -> float:
        """The highest grade with which it can be computed: a sum of gains must be a number.

        >>> parse_metric("nDCG(gain=exp)").highest_grade, parse_metric("AP").highest_grade
        (990.0, inf)
        """
        gain = self.definition.options.get("gain")
        return math.inf if gain is None else _HIGHEST_GRADES.get(dict(self.options).get("gain", gain.default), math.inf)

    @property
    def max_rel(self) -> float:
        """The grade as which higher grades count; infinite if all grades count as they are."""
        option = self.definition.options.get("max_rel")
        return math.inf if option is None else float(dict(self.options).get("max_rel", option.default))

    def values(self, assessment: Assessment) -> FloatArray:
        """The metric's value for every query.

        Args:
            assessment: n rankings seen through their judgements; with each chunk counted if `definition.chunks` is set,
                and with holes filled if `holes` is.

        Returns:
            float64[n].
        """
        seen = assessment.judged_only() if self.judged_only else assessment
        return self.definition.kernel(seen, **self.arguments)


def parse_metric(text: str, also: Callable[[], Mapping[str, Iterable[str]]] = dict) -> Metric:
    """Read a metric's name; `also` returns further names by family, which only messages show.

    >>> str(parse_metric("Recall(rel=1)@100")), str(parse_metric("nDCG( gain = exp )@10"))
    ('R@100', 'nDCG(gain=exp)@10')
    >>> str(parse_metric("hit_rate@5")), str(parse_metric("ndcg_burges@10"))
    ('Success@5', 'nDCG(gain=exp)@10')
    """
    written = split_name(text)
    name = _by_plain().get(plain(written.name))
    if name is None:
        equivalent = split_name(_name_elsewhere(written.name, also))
        name = _by_plain()[plain(equivalent.name)]
        written = replace(written, options=(*equivalent.options, *written.options))
    if name == "NumRet" and "rel" in dict(written.options):  # ir_measures
        name = "NumRelRet"
    options: dict[str, Option] = {}
    judged_only = holes = False
    for written_option, written_value in written.options:
        option, value = option_here(written_option, written_value or "", definition_named(name).options)
        if option in options:
            raise InputError(f"metric {text!r}: the option {option!r} is given twice; keep one")
        if option == "judged_only":
            judged_only = _parse_bool(text, option, value)
        elif option == HOLES and name in METRICS:
            holes = _parse_holes(text, value)
        else:
            options[option] = _parse_option(text, name, option, value)
    if judged_only and holes:
        raise InputError(f"metric {text!r}: with judged_only=True there are no holes to fill; remove one of the two")
    if not written.in_tokens:
        return replace(_checked_metric(name, options, written.cutoff, judged_only, text), holes=holes)
    if not definition_named(name).takes_budget:
        raise InputError(f"metric {text!r} takes no budget of tokens: write {name}@{written.cutoff}")
    return replace(_checked_metric(name, options, None, judged_only, text), budget=written.cutoff)


def _name_elsewhere(name: str, also: Callable[[], Mapping[str, Iterable[str]]]) -> str:
    """Return our name of a metric that has another name elsewhere; refuse other names."""
    refuse_homonym(name)
    if (meant := meant_by(name)) is not None:
        return meant
    refuse_foreign(name)
    names = also()
    aliases = {OTHER_NAMES: [*ALIASES, *names.get(OTHER_NAMES, ())]}
    raise InputError(f"unknown metric {name!r}; {did_you_mean_among(name, {**families(), **names, **aliases})}")


def _checked_metric(
    name: str, options: dict[str, Option], cutoff: int | None, judged_only: bool, text: str | None = None
) -> Metric:
    definition = definition_named(name)
    text = text or name
    if cutoff is None and definition.cutoff == "required":
        raise InputError(f"metric {text!r} needs a cutoff, such as {name}@10")
    if cutoff is not None and definition.cutoff == "refused":
        raise InputError(f"metric {text!r} takes no cutoff: write {name}")
    defaults = {option: parameter.default for option, parameter in definition.options.items()}
    if name in METRICS and options.get("gains") and "gain" in options:
        raise InputError(f"metric {text!r}: gain and gains exclude each other; remove one")
    if options.get("graded") is True and "rel" in options:
        raise InputError(f"metric {text!r}: with graded=True grades count themselves, and rel has no effect; remove it")
    known = {**defaults, **options}
    if name in METRICS and "min_rel" in known and not known["min_rel"] < known["max_rel"]:
        raise InputError(f"metric {text!r}: min_rel={known['min_rel']:g} is not below max_rel={known['max_rel']:g}")
    not_default = tuple(sorted((option, value) for option, value in options.items() if value != defaults[option]))
    return Metric(name, not_default, cutoff, judged_only)


def _parse_option(text: str, name: str, option: str, written: str) -> Option:
    options = definition_named(name).options
    if option not in options:
        hint = did_you_mean(option, [*options, "judged_only"])
        if option == "labels":
            hint = "labels=True is for judged metrics. Labels of documents are judgements: rankbeam label OUT -m METRIC"
        raise InputError(f"metric {text!r}: unknown option {option!r}; {hint}")
    default = options[option].default
    if isinstance(default, bool):
        return _parse_bool(text, option, written)
    if isinstance(default, str):
        return _parse_text(text, name, option, written.strip("'\""))
    try:
        number = float(written)
    except ValueError:
        number = math.nan
    ranges = _RANGES_OF_RANKINGS if name in METRICS else _RANGES_OF_SUBTOPICS if name in SUBTOPIC_METRICS else _RANGES
    low, high = ranges.get(option, (-_HIGHEST_OPTION, _HIGHEST_OPTION))
    if not low <= number <= high:
        raise InputError(f"metric {text!r}: {option}={written} is not a number from {low:g} to {high:g}")
    if isinstance(default, float):
        return number
    if not number.is_integer():
        raise InputError(f"metric {text!r}: {option}={written} is not a whole number")
    return int(number)


def _parse_text(text: str, name: str, option: str, value: str) -> str:
    if option == "gains" and name in METRICS:
        if (gains := canonical_gains(value)) is None:
            raise InputError(f"metric {text!r}: gains={value} are not gains of at least 0; write gains={{1:5,2:7}}")
        return gains
    if name in METRICS and value not in kernels.GAINS:
        raise InputError(f"metric {text!r}: unknown gain {value!r}; valid are: {', '.join(kernels.GAINS)}")
    return value


def _parse_bool(text: str, option: str, written: str) -> bool:
    if written.lower() not in ("true", "false"):
        raise InputError(f"metric {text!r}: {option}={written} is neither True nor False")
    return written.lower() == "true"


def _parse_holes(text: str, written: str) -> bool:
    if written.strip("'\"") != LLM:
        raise InputError(f"metric {text!r}: {HOLES}={written} is not known; write {HOLES}={LLM}")
    return True


def _format_option(value: Option) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
