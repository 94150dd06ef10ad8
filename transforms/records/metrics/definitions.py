"""Definitions of metrics of rankings: formulas whose arguments are judged rankings, a cutoff and options.

A metric of another package is an entry point of the group `rankbeam.metrics` with the name of the metric.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, wraps
from types import MappingProxyType
from typing import Any

import numpy as np

from rankbeam.transforms.kernels.arrays import FloatArray
from rankbeam.transforms.kernels.ranking import incomplete, spans, subtopics, user_models
from rankbeam.transforms.kernels.ranking import metrics as kernels
from rankbeam.transforms.kernels.ranking.curves import mean_interpolated_precision
from rankbeam.transforms.kernels.ranking.geometric import log_average_precision, log_bpref
from rankbeam.transforms.kernels.ranking.rankings import Assessment
from rankbeam.transforms.kernels.ranking.similarity import compatibility
from rankbeam.transforms.kernels.ranking.ties import CHUNKS, SAMPLE, SHARE, Ties
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.other_tools import SAME, plain
from rankbeam.transforms.records.plug_ins import (
    ROUNDING,
    blame_plug_in,
    entry_points_of,
    load_plug_in,
    plug_in_label,
    read_only,
)

GROUP = "rankbeam.metrics"


@dataclass(frozen=True)
class MetricDefinition:
    """The definition of a metric of rankings.

    Attributes:
        kernel: the formula: from an `Assessment` of n rankings, and the arguments `cutoff` and options by name, to
            float64[n]. A `cutoff` with the default None is optional, one without a default is required. Options have
            defaults, whose type they share: bool, int, float or str. An option `rel` is the lowest relevant grade.
        highest: the highest value that a query can have (the lowest is 0); None if there is no bound.
        lower_is_better: lower values are better, as for an error rate.
        chunks: every retrieved chunk counts, not the best one of each document.
        summed: the value of a configuration is the sum over queries, not the mean.
        geometric: values are on the scale of `log_average_precision`, and geometric means are shown beside the means.
        subtopics: the judgements are read with their subtopics.
        ties: effect of documents with equal scores; None if that is unknown. `ties: true` then reports 0 and
            `highest` as the bounds of queries with tied judged documents.
    """

    kernel: Callable[..., FloatArray]
    highest: float | None = 1.0
    lower_is_better: bool = False
    chunks: bool = False
    summed: bool = False
    geometric: bool = False
    subtopics: bool = False
    ties: Ties | None = None

    @cached_property
    def options(self) -> dict[str, inspect.Parameter]:
        """The keyword arguments of the kernel, except the cutoffs."""
        _, *parameters = inspect.signature(self.kernel).parameters.values()
        return {parameter.name: parameter for parameter in parameters if parameter.name not in ("cutoff", "budget")}

    @cached_property
    def cutoff(self) -> str:
        """Rule for a cutoff: "required", "optional" or "refused"."""
        parameter = inspect.signature(self.kernel).parameters.get("cutoff")
        if parameter is None:
            return "refused"
        return "required" if parameter.default is inspect.Parameter.empty else "optional"

    @cached_property
    def takes_budget(self) -> bool:
        """True if a cutoff may be a number of tokens."""
        return "budget" in inspect.signature(self.kernel).parameters


_Definition, _GRADED, _FREE = MetricDefinition, Ties.BY_GRADE, Ties.ORDER_FREE

METRICS: Mapping[str, MetricDefinition] = MappingProxyType(
    {
        "nDCG": _Definition(kernels.ndcg, ties=_GRADED),
        "DCG": _Definition(kernels.dcg, ties=_GRADED, highest=None),
        "P": _Definition(kernels.precision, ties=_GRADED),
        "R": _Definition(kernels.recall, ties=_GRADED),
        "Rcap": _Definition(kernels.capped_recall, ties=_GRADED),
        "F1": _Definition(kernels.f1, ties=_GRADED),
        "RR": _Definition(kernels.reciprocal_rank, ties=_GRADED),
        "AP": _Definition(kernels.average_precision, ties=_GRADED),
        "logAP": _Definition(log_average_precision, ties=_GRADED, geometric=True),
        "IPrec": _Definition(kernels.interpolated_precision, ties=_GRADED),
        "IPrec11": _Definition(mean_interpolated_precision, ties=_GRADED),
        "Success": _Definition(kernels.success, ties=_GRADED),
        "Rprec": _Definition(kernels.r_precision, ties=_GRADED),
        "Bpref": _Definition(incomplete.bpref, ties=_GRADED),
        "logBpref": _Definition(log_bpref, ties=_GRADED, geometric=True),
        "infAP": _Definition(incomplete.inferred_ap, ties=SAMPLE),
        "Judged": _Definition(incomplete.judged, ties=_GRADED),
        "Unjudged": _Definition(incomplete.unjudged, ties=_GRADED, lower_is_better=True),
        "RBP": _Definition(kernels.rank_biased_precision, ties=_GRADED),
        "ERR": _Definition(kernels.expected_reciprocal_rank, ties=_GRADED),
        "Compat": _Definition(compatibility, ties=_GRADED),
        "INSQ": _Definition(user_models.insq, ties=_GRADED),
        "INST": _Definition(user_models.inst, ties=_GRADED),
        "BPM": _Definition(user_models.bejeweled_player),
        "SDCG": _Definition(user_models.scaled_dcg, ties=_GRADED),
        "NERR8": _Definition(user_models.nearly_err_8, ties=_GRADED),
        "NERR9": _Definition(user_models.nearly_err_9, ties=_GRADED),
        "NERR10": _Definition(user_models.nearly_err_10, ties=_GRADED),
        "NERR11": _Definition(user_models.nearly_err_11, ties=_GRADED),
        "SetP": _Definition(kernels.set_precision, ties=replace(_FREE, is_share=True)),
        "SetR": _Definition(kernels.set_recall, ties=_FREE),
        "SetAP": _Definition(kernels.set_average_precision, ties=replace(_FREE, is_share=True)),
        "SetF": _Definition(kernels.set_f, ties=replace(_FREE, is_share=True)),
        "NumRet": _Definition(kernels.num_retrieved, ties=_FREE, highest=None, summed=True),
        "NumRel": _Definition(kernels.num_relevant, ties=_FREE, highest=None, summed=True),
        "NumRelRet": _Definition(kernels.num_relevant_retrieved, ties=_FREE, highest=None, summed=True),
        "NumNonrelRet": _Definition(
            incomplete.num_non_relevant_retrieved, ties=SHARE, highest=None, summed=True, lower_is_better=True
        ),
        "chunk_P": _Definition(kernels.chunk_precision, ties=replace(_GRADED, is_share=True), chunks=True),
        "chunk_R": _Definition(kernels.chunk_recall, ties=CHUNKS, chunks=True),
        "chunk_nDCG": _Definition(kernels.chunk_ndcg, ties=_GRADED, highest=None, chunks=True),
    }
)
"""Metrics of documents, by name."""

SPAN_METRICS: Mapping[str, MetricDefinition] = MappingProxyType(
    {
        "SpanRecall": _Definition(spans.span_recall),
        "SpanPrecision": _Definition(spans.span_precision),
        "SpanIoU": _Definition(spans.span_iou),
        "AllGroups": _Definition(spans.all_groups),
    }
)
"""Metrics of chunks and evidence spans, by name: their kernels take a `SpanAssessment`."""

SUBTOPIC_METRICS: Mapping[str, MetricDefinition] = MappingProxyType(
    {
        "alpha_nDCG": _Definition(subtopics.alpha_ndcg, highest=None, subtopics=True),
        "alpha_DCG": _Definition(subtopics.alpha_dcg, subtopics=True),
        "ERR_IA": _Definition(subtopics.err_ia, subtopics=True),
        "nERR_IA": _Definition(subtopics.nerr_ia, highest=None, subtopics=True),
        "NRBP": _Definition(subtopics.novelty_rbp, subtopics=True),
        "nNRBP": _Definition(subtopics.normalized_novelty_rbp, highest=None, subtopics=True),
        "AP_IA": _Definition(subtopics.intent_aware_ap, subtopics=True),
        "P_IA": _Definition(subtopics.intent_aware_precision, subtopics=True),
        "StRecall": _Definition(subtopics.subtopic_recall, subtopics=True),
    }
)
"""Metrics of documents that are judged by subtopic, by name."""

_BUILT_IN: Mapping[str, MetricDefinition] = {**METRICS, **SPAN_METRICS, **SUBTOPIC_METRICS}
ALIASES: Mapping[str, str] = MappingProxyType(
    {"MRR": "RR", "MAP": "AP", "Recall": "R", "Precision": "P", "Hit": "Success", "RPrec": "Rprec", "BPref": "Bpref"}
)


@cache
def metric_names() -> tuple[str, ...]:
    """The names of all metrics of rankings, with those of other packages last, which are not loaded."""
    names = {plain(name): name for name in (*_BUILT_IN, *ALIASES, *SAME)}
    for name in (plug_ins := sorted(entry_points_of(GROUP))):
        if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name):
            problem = "the name of a metric has letters, digits and underscores, and begins with a letter"
            raise InputError(f"{plug_in_label(GROUP, name)}: {problem}")
        if plain(name) in names:
            raise InputError(
                f"{plug_in_label(GROUP, name)}: {names[plain(name)]} is a metric already; choose another name"
            )
        names[plain(name)] = name
    return (*_BUILT_IN, *plug_ins)


def families() -> dict[str, tuple[str, ...]]:
    named = {
        "rankings": tuple(name for name, definition in METRICS.items() if not definition.chunks),
        "rankings of chunks": tuple(name for name, definition in METRICS.items() if definition.chunks),
        "spans of evidence": tuple(SPAN_METRICS),
        "subtopics": tuple(SUBTOPIC_METRICS),
        "other packages": tuple(name for name in metric_names() if name not in _BUILT_IN),
    }
    return {family: names for family, names in named.items() if names}


@cache
def definition_named(name: str) -> MetricDefinition:
    """The definition of a metric, loaded if another package defines it."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    definition = load_plug_in(GROUP, name)
    if inspect.isfunction(definition):
        definition = MetricDefinition(definition)
    what = f"{plug_in_label(GROUP, name)}: {entry_points_of(GROUP)[name].value}"
    if not isinstance(definition, MetricDefinition):
        raise InputError(f"{what} is neither a function nor a MetricDefinition")
    if not inspect.signature(definition.kernel).parameters:
        raise InputError(f"{what} takes no Assessment")
    for option, parameter in definition.options.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InputError(f"{what} takes any argument; name its options")
        if not isinstance(parameter.default, bool | int | float | str):
            raise InputError(f"{what}: the option {option!r} needs a default that is a bool, a number or a str")
    if definition.takes_budget:
        raise InputError(f"{what} takes a budget, which metrics of documents do not have")
    return replace(definition, kernel=_checked_kernel(plug_in_label(GROUP, name), definition))


def _checked_kernel(what: str, definition: MetricDefinition) -> Callable[..., FloatArray]:
    """The kernel of another package, with its values checked."""
    lowest, highest = -ROUNDING, np.inf if definition.highest is None else definition.highest + ROUNDING

    @wraps(definition.kernel)
    def kernel(a: Assessment, **options: Any) -> FloatArray:
        arrays = {entry.name: read_only(getattr(a, entry.name)) for entry in fields(a)}
        with blame_plug_in(what):
            values = np.asarray(definition.kernel(Assessment(**arrays), **options))
        if values.shape != (a.queries,) or values.dtype.kind not in "biuf":
            problem = f"returned {values.dtype} of shape {values.shape}; a number per query would be ({a.queries},)"
            raise InputError(f"{what} {problem}")
        values = values.astype(np.float64)
        wrong = ~((values >= lowest) & (values <= highest) & np.isfinite(values))
        if wrong.any():
            most = "any number" if definition.highest is None else f"{definition.highest:g}"
            raise InputError(f"{what} has a value of {values[wrong][0]:g}, which is not from 0 to {most}")
        return np.clip(values, 0.0, definition.highest)

    return kernel
