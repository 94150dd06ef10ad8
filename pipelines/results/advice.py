"""Suggestions for the next experiment: rules about means that are low while others are high.

A mean is low if its whole interval is below a rule's limit, and high if its whole interval is at or above it. Both hold
with the run's confidence, and so does a rule with two conditions, which is wrong only if one of them is. If queries
failed, the conditions must also hold for the mean's lowest and highest possible values. No rule uses intervals over few
queries, or verdicts of offline judges, which only compare words.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from operator import eq, lt
from typing import NamedTuple

from rankbeam.pipelines.results.leaderboard import distinct, offline_words
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.metrics.names import split_name
from rankbeam.transforms.records.scores.rows import ConfigurationMetric
from rankbeam.transforms.records.slices import ALL

LOW, HIGH, NOISY = 0.5, 0.7, 0.1  # limits: most is missing; most is present; a tenth of an answer's claims is wrong


@dataclass(frozen=True)
class Rule:
    """One rule."""

    name: str
    suggestion: str  # advice for a configuration for which the rule holds
    low: tuple[str, ...]  # one of these metrics must be low; without any, only the other condition applies
    high: tuple[str, ...]  # one of these metrics must be high; if `low` is not empty, the one at the same position
    limit: float = HIGH  # the lowest value that counts as high
    deeper: bool = False  # True if the high metric's cutoff must be greater than the low metric's, rather than equal


RULES = (
    Rule(
        "rank_higher",
        "the relevant contexts are retrieved, but rank too low: rerank, or raise top_k and the number of contexts",
        ("R", "Rcap", "SpanRecall", "ContextRecall"),
        ("R", "Rcap", "SpanRecall", "ContextRecall"),
        deeper=True,
    ),
    Rule(
        "narrow",
        "most of the retrieved contexts are not relevant: set a threshold, rerank, or use fewer contexts",
        ("P", "SpanPrecision", "ContextPrecision(claims)"),
        ("R", "SpanRecall", "ContextRecall"),
    ),
    Rule(
        "answer_better",
        "the contexts contain facts that the answers lack: change the prompt or the model that answers",
        ("ClaimRecall",),
        ("ContextRecall",),
    ),
    Rule(
        "less_noise",
        "wrong claims come from the contexts: use fewer contexts",
        (),
        ("NoiseSensitivity(relevant)", "NoiseSensitivity(irrelevant)"),
        limit=NOISY,
    ),
)


@dataclass(frozen=True)
class Advice:
    """A rule that holds for a configuration."""

    rule: Rule
    configuration: str
    low: ConfigurationMetric | None
    high: ConfigurationMetric

    @property
    def because(self) -> str:
        """The conditions, such as "R@10 is low, and R@100 is high"."""
        high = f"{self.high.metric} is high"
        return high if self.low is None else f"{self.low.metric} is low, and {high}"

    @property
    def rows(self) -> tuple[ConfigurationMetric, ...]:
        return tuple(row for row in (self.low, self.high) if row is not None)


def advice(results: Results) -> list[Advice]:
    """The rules that hold over all queries, in the order of rules; configurations with equal values count as one."""
    rows = distinct(results)
    by_name = {row["name"]: [results.means[row["config_id"], ALL, name] for name in results.metrics] for row in rows}
    suggestions = [item for name, means in by_name.items() for item in advice_of(name, means)]
    return sorted(suggestions, key=lambda item: RULES.index(item.rule))


def advice_of(configuration: str, means: Sequence[ConfigurationMetric]) -> Iterator[Advice]:
    """The rules that hold for one configuration's means, each at most once for metrics with equal options.

    With several cutoffs, the nearest pair decides: the deepest low recall and the next deeper high one.
    """
    known = list(filter(None, map(_Mean.of, means)))
    for rule in RULES:
        nearest: dict[Hashable, Advice] = {}
        for low, high in sorted(_matching_pairs(rule, known), key=_order):
            item = Advice(rule, configuration, None if low is None else low.row, high.row)
            nearest.setdefault((high.name, high.options, high.in_tokens), item)
        yield from nearest.values()


class _Mean(NamedTuple):
    """A mean with the parts of its metric's name; a word that chooses the definition belongs to the name."""

    name: str
    options: tuple[tuple[str, str | None], ...]
    depth: float
    in_tokens: bool
    row: ConfigurationMetric

    @classmethod
    def of(cls, row: ConfigurationMetric) -> "_Mean | None":
        """A mean with its metric's parsed name; None for offline judges, and for invalid names in a damaged table."""
        try:
            written = split_name(row.metric)
        except InputError:
            return None
        if offline_words(row.metric):
            return None
        words = [f"({option})" for option, value in written.options if value is None]
        options = tuple(option for option in written.options if option[1] is not None)
        depth = math.inf if written.cutoff is None else written.cutoff
        return cls(written.name + "".join(words), options, depth, written.in_tokens, row)


_Pair = tuple[_Mean | None, _Mean]


def _matching_pairs(rule: Rule, means: Sequence[_Mean]) -> Iterator[_Pair]:
    """The pairs of means for which a rule holds."""
    highs = [mean for mean in means if mean.name in rule.high and _is_high(mean.row, rule.limit)]
    if not rule.low:
        yield from ((None, high) for high in highs)
        return
    lows = [mean for mean in means if mean.name in rule.low and _is_low(mean.row)]
    names, compare = set(zip(rule.low, rule.high, strict=True)), lt if rule.deeper else eq
    for low, high in product(lows, highs):
        is_alike = (low.options, low.in_tokens) == (high.options, high.in_tokens)
        if (low.name, high.name) in names and is_alike and compare(low.depth, high.depth):
            yield low, high


def _order(pair: _Pair) -> tuple[float, float]:
    low, high = pair
    return (high.depth, 0.0) if low is None or low.depth == high.depth else (-low.depth, high.depth)


def _is_low(row: ConfigurationMetric) -> bool:
    ends = (row.ci_high, row.highest) if row.failed else (row.ci_high,)
    return not row.is_unreliable and all(end is not None and end < LOW for end in ends)


def _is_high(row: ConfigurationMetric, limit: float) -> bool:
    ends = (row.ci_low, row.lowest) if row.failed else (row.ci_low,)
    return not row.is_unreliable and all(end is not None and end >= limit for end in ends)
