"""trec_eval's names for the metrics that both tools have, in the order in which trec_eval prints them."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from rankbeam.transforms.kernels.ranking.curves import LEVELS
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.metrics.names import OTHER_NAMES, Metric, parse_metric
from rankbeam.transforms.records.metrics.other_tools import refuse_foreign

_CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_FAMILIES: tuple[tuple[str, str, tuple[float, ...] | None], ...] = (
    ("num_ret", "NumRet", None),
    ("num_rel", "NumRel", None),
    ("num_rel_ret", "NumRelRet", None),
    ("map", "AP", None),
    ("gm_map", "logAP", None),
    ("Rprec", "Rprec", None),
    ("bpref", "Bpref", None),
    ("recip_rank", "RR", None),
    ("iprec_at_recall", "IPrec", LEVELS),
    ("P", "P", _CUTOFFS),
    ("recall", "R", _CUTOFFS),
    ("infAP", "infAP", None),
    ("gm_bpref", "logBpref", None),
    ("Rprec_mult", "Rprec", tuple(fifth / 5 for fifth in range(1, 11))),
    ("11pt_avg", "IPrec11", None),
    ("ndcg", "nDCG", None),
    ("ndcg_cut", "nDCG", _CUTOFFS),
    ("map_cut", "AP", _CUTOFFS),
    ("relative_P", "Rcap", _CUTOFFS),
    ("success", "Success", (1, 5, 10)),
    ("set_P", "SetP", None),
    ("set_relative_P", "SetP(relative=True)", None),
    ("set_recall", "SetR", None),
    ("set_map", "SetAP", None),
    ("set_F", "SetF", None),
    ("num_nonrel_judged_ret", "NumNonrelRet", None),
    ("rbp", "RBP(graded=True,p=0.9)", None),
    ("unj", "Unjudged", (5, 10, 20)),
)
_COUNTS = ("num_ret", "num_rel", "num_rel_ret")
_OFFICIAL = (*_COUNTS, "map", "gm_map", "Rprec", "bpref", "recip_rank", "iprec_at_recall", "P")
_BY_TREC = {trec: (name, cutoffs) for trec, name, cutoffs in _FAMILIES}
_OF_SETS = (*_COUNTS, "set_P", "set_relative_P", "set_recall", "set_map", "set_F")
_SETS = {"all_trec": tuple(_BY_TREC), "official": _OFFICIAL, "set": _OF_SETS}
_LEVELS = {"IPrec": "recall", "Rprec": "multiple"}
"""Metrics with a level in trec_eval's name, and the option that has it."""
_SPELLED = {trec.lower(): trec for trec in _BY_TREC}
_ORDER = {(name, cutoffs is not None): position for position, (_, name, cutoffs) in enumerate(_FAMILIES)}

_Families = Callable[[], Mapping[str, Sequence[str]]]  # returns further names by family, for messages


def parse_metrics(words: Iterable[str], also: _Families = dict) -> tuple[Metric, ...]:
    """Read metrics in rankbeam's names, in trec_eval's (`map`, `P.5,10`, `ndcg_cut_10`), or in its sets.

    >>> [str(metric) for metric in parse_metrics(["map", "P.5,10", "nDCG@3"])]
    ['AP', 'P@5', 'P@10', 'nDCG@3']
    """
    metrics: dict[Metric, None] = {}
    for word in words:
        metrics |= dict.fromkeys(_parse(word, also))
    return tuple(metrics)


def _parse(word: str, also: _Families) -> Iterable[Metric]:
    if word in _SETS:
        return [metric for trec in _SETS[word] for metric in _expand(trec)]
    family, dot, parameters = word.partition(".")
    if family == "rbp" and parameters.startswith("p="):  # trec_eval's
        return [parse_metric(f"RBP(graded=True,{parameters})")]
    if family.lower() == "rbp" and parameters.isdecimal():  # ranx: rbp.95
        return [parse_metric(f"RBP(p=0.{parameters})")]
    if family in _BY_TREC and (dot or family != "P"):
        return _expand(family, parameters if dot else None, word)
    stem, _, cutoff = word.rpartition("_")
    if cutoff.replace(".", "", 1).isdecimal():
        if stem.lower().endswith("_at"):  # ndcg_at_10, as MTEB and BEIR's results have it
            name = stem[:-3]
            return [parse_metric(f"{name.lower() if name == 'Accuracy' else name}@{cutoff}")]
        if stem.lower() in _SPELLED:
            return _expand(_SPELLED[stem.lower()], cutoff, word)
        refuse_foreign(stem)
    if dot and family.lower() in _SPELLED:
        return _expand(_SPELLED[family.lower()], parameters, word)
    if dot and "(" not in word and "@" not in family:
        refuse_foreign(family)
        raise InputError(f"unknown metric {word!r}; {did_you_mean(family, _BY_TREC)}")
    return [parse_metric(word, also=lambda: {**also(), OTHER_NAMES: [*_BY_TREC, *_SETS]})]


def _expand(trec: str, parameters: str | None = None, word: str = "") -> Sequence[Metric]:
    name, defaults = _BY_TREC[trec]
    if parameters is not None and trec == "set_F":
        return [parse_metric(f"SetF(beta={parameters})")]
    if defaults is None:
        if parameters is not None and trec == "ndcg" and "=" in parameters:
            return [parse_metric(f"nDCG(gains={{{parameters.replace('=', ':')}}})")]
        if parameters is not None:
            cut = f"{name}@{parameters}"
            takes_cutoff = parameters.isdecimal() and parse_metric(name).definition.cutoff != "refused"
            raise InputError(f"metric {word!r}: {trec} takes no parameters here; write {cut if takes_cutoff else trec}")
        return [parse_metric(name)]
    cutoffs = defaults if parameters is None else parameters.split(",")
    if "" in cutoffs:
        raise InputError(f"metric {word!r}: a cutoff is missing; write it as {trec}.5,10")
    form = f"{name}(multiple={{}})" if trec == "Rprec_mult" else f"{name}@{{}}"
    return [parse_metric(form.format(cutoff)) for cutoff in cutoffs]


def trec_name(metric: Metric) -> str | None:
    """trec_eval's name of a metric; None if it has no such metric.

    The relevance level and "judged only" are options of trec_eval's command line, not part of a name.

    >>> trec_name(parse_metric("nDCG@10")), trec_name(parse_metric("AP(rel=2)")), trec_name(parse_metric("ERR@20"))
    ('ndcg_cut_10', 'map', None)
    """
    position = _position(metric)
    if position is None:
        return None
    trec = _FAMILIES[position][0]
    if (level := _level(metric)) is not None:
        return f"{trec}_{level:.2f}" if float(f"{level:.2f}") == level else None
    return trec if metric.cutoff is None else f"{trec}_{metric.cutoff}"


def _position(metric: Metric) -> int | None:
    """The position in trec_eval's output of its metric with these options; None if it has no such metric."""
    options = tuple((name, value) for name, value in metric.options if name not in ("rel", *_LEVELS.values()))
    base = replace(metric, options=options, cutoff=None, judged_only=False)
    return _ORDER.get((str(base), _parameter(metric) is not None))


def _parameter(metric: Metric) -> float | None:
    """The number that follows trec_eval's name: a cutoff, a level of recall, or a multiple of R."""
    level = _level(metric)
    return metric.cutoff if level is None else level


def _level(metric: Metric) -> float | None:
    level = dict(metric.options).get(_LEVELS.get(metric.name, ""), 0.0 if metric.name == "IPrec" else None)
    return None if level is None else float(level)


def trec_names(metrics: Iterable[Metric]) -> dict[Metric, str]:
    """The names in trec_eval's output, in its order. Metrics that it lacks follow under their own names.

    Metrics that it would print under one name keep their own names, too: it has one relevance level for all.

    >>> list(trec_names(map(parse_metric, ["ERR@5", "P@10", "AP(rel=2)", "AP", "P@5"])).values())
    ['AP(rel=2)', 'AP', 'P_5', 'P_10', 'ERR@5']
    """
    names = {metric: trec_name(metric) for metric in metrics}
    often = Counter(names.values())

    def place(metric: Metric) -> tuple[float, float]:
        position = _position(metric) if names[metric] else None
        return (math.inf, 0.0) if position is None else (position, _parameter(metric) or 0.0)

    return {
        metric: name if (name := names[metric]) and often[name] == 1 else str(metric)
        for metric in sorted(names, key=place)
    }
