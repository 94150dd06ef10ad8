"""Dialects: the rules of other tools that differ from rankbeam's, to show why tools report different values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.metrics.names import Metric, parse_metric


@dataclass(frozen=True)
class Dialect:
    """The rules of one tool that differ from rankbeam's."""

    name: str
    by_score: bool = False
    single_precision: bool = False
    skips_missing: bool = False  # a judged query without results is left out of the mean, instead of scoring 0
    drops_self: bool = False
    counts_chunks: bool = False

    def metric(self, requested: Metric) -> Metric:
        """The metric that this tool computes under the requested metric's name.

        >>> from rankbeam.transforms.records.metrics.names import parse_metric
        >>> str(DIALECTS["notebook"].metric(parse_metric("P@5"))), str(DIALECTS["beir"].metric(parse_metric("P@5")))
        ('chunk_P(rel=0)@5', 'P@5')
        """
        name = _BY_CHUNKS.get(requested.name)
        if not self.counts_chunks or name is None or requested.cutoff is None:
            return requested
        exact = parse_metric(f"{name}@{requested.cutoff}")
        options = {"rel": 0.0, **dict(requested.options)}  # the notebook counts every judged document as relevant
        for option, value in options.items():
            exact = exact.with_default(option, value)
        return replace(exact, judged_only=requested.judged_only, holes=requested.holes)


_BY_CHUNKS: Mapping[str, str] = MappingProxyType({"P": "chunk_P", "R": "chunk_R", "nDCG": "chunk_nDCG"})

RANKBEAM = Dialect("rankbeam")
_PYTREC_EVAL = Dialect("pytrec_eval", by_score=True, single_precision=True, skips_missing=True)

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        dialect.name: dialect
        for dialect in (
            RANKBEAM,
            Dialect("trec_eval", by_score=True),
            _PYTREC_EVAL,
            replace(_PYTREC_EVAL, name="beir", drops_self=True),
            Dialect("notebook", counts_chunks=True),
        )
    }
)
"""Dialects by name. trec_eval is version 10 with -c; pytrec_eval has the rules of trec_eval 9 without -c; beir has the
rules of `EvaluateRetrieval.evaluate`, not of its `evaluate_custom`."""


def parse_dialect(name: str) -> Dialect:
    if name not in DIALECTS:
        raise InputError(f"unknown dialect {name!r}; {did_you_mean(name, DIALECTS)}")
    return DIALECTS[name]
