"""How other tools score a run, as far as they differ: why two of them disagree can be seen side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.names import Metric, parse_metric
from rankbeam.transforms.records.suggestions import did_you_mean


@dataclass(frozen=True)
class Dialect:
    """The rules of one tool where they are not rankbeam's own.

    Attributes:
        name: of the tool.
        by_score: rankings are ordered by score, also those of a service whose own order stands with rankbeam.
        single_precision: scores are compared as 32-bit floats, so more of them tie.
        skips_missing: a judged query without results is left out of the mean, instead of scoring 0.
        drops_self: a document with the id of its query is taken out first.
        counts_chunks: every chunk of a document counts, precision is over the number retrieved, whatever is judged is
            relevant, and gain is exponential: P, R and nDCG are those of Google's RAG Engine notebook.
    """

    name: str
    by_score: bool = False
    single_precision: bool = False
    skips_missing: bool = False
    drops_self: bool = False
    counts_chunks: bool = False

    def metric(self, asked: Metric) -> Metric:
        """The metric that this tool computes under the name of the one that was asked for.

        >>> from rankbeam.transforms.records.metrics.names import parse_metric
        >>> str(DIALECTS["notebook"].metric(parse_metric("P@5"))), str(DIALECTS["beir"].metric(parse_metric("P@5")))
        ('chunk_P(rel=0)@5', 'P@5')
        """
        name = _BY_CHUNKS.get(asked.name)
        if not self.counts_chunks or name is None or asked.cutoff is None:
            return asked
        exact = parse_metric(f"{name}@{asked.cutoff}")
        options = {"rel": 0.0, **dict(asked.options)}  # whatever is in the qrels counts there
        for option, value in options.items():
            exact = exact.with_default(option, value)
        return replace(exact, judged_only=asked.judged_only)


_BY_CHUNKS: Mapping[str, str] = MappingProxyType({"P": "chunk_P", "R": "chunk_R", "nDCG": "chunk_nDCG"})

RANKBEAM = Dialect("rankbeam")
_PYTREC_EVAL = Dialect("pytrec_eval", by_score=True, single_precision=True, skips_missing=True)

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        each.name: each
        for each in (
            RANKBEAM,
            Dialect("trec_eval", by_score=True),
            _PYTREC_EVAL,
            replace(_PYTREC_EVAL, name="beir", drops_self=True),
            Dialect("notebook", counts_chunks=True),
        )
    }
)
"""By name. trec_eval is version 10 with -c; pytrec_eval has the rules of trec_eval 9 without -c; beir is what
`EvaluateRetrieval.evaluate` does, not its own `evaluate_custom`."""


def parse_dialect(name: str) -> Dialect:
    """The dialect of that name.

    Raises:
        InputError: there is none.
    """
    if name not in DIALECTS:
        raise InputError(f"unknown dialect {name!r}; {did_you_mean(name, DIALECTS)}")
    return DIALECTS[name]
