"""Parts that all tables of a leaderboard share."""

import itertools
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rankbeam.pipelines.results.leaderboard import (
    distinct,
    distinct_means,
    geometric_words,
    list_names,
    offline_words,
    without_value,
)
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.scores.rows import COUNTS, FEW, FEW_QUERIES, ConfigurationMetric, significance_level
from rankbeam.transforms.records.slices import ALL, grouping_of, ranked_by, value_of

_MOST_SLICES = 12
_LEFT_OUT = ("failed", "missing", "undefined", "not_asked")
NONE = "none"


CUT_SHORT = "† looks at more documents than top_k leaves"


UNRELIABLE = f"‡ {FEW}"


def has_doubt(results: Results) -> bool:
    """Return whether an interval that tables show rests on few queries."""
    tables = {ALL: results.metrics} | {name: results.metrics[:1] for name in results.slices if name != ALL}
    ids = [row["config_id"] for row in results.configurations]
    return any(
        results.means[config_id, name, metric].is_unreliable
        for config_id in ids
        for name, metrics in tables.items()
        for metric in metrics
    )


def mark(results: Results, mean: ConfigurationMetric) -> str:
    """The mark after a mean that reads more documents than `top_k` leaves; "" after others."""
    return "†" if (mean.config_id, mean.metric) in results.cut_short else ""


def overall(results: Results, config_id: str) -> list[ConfigurationMetric]:
    return [results.means[config_id, ALL, metric] for metric in results.metrics]


def count_columns(results: Results) -> list[str]:
    """Names of the columns that count queries, without those that are 0 for all configurations."""
    first = [overall(results, row["config_id"])[0] for row in results.configurations]
    return ["queries", *(name for name in COUNTS if any(getattr(row, name) for row in first))]


def counts(results: Results, config_id: str, columns: Sequence[str]) -> list[str]:
    """The cells of `count_columns`."""
    row = overall(results, config_id)[0]
    return [f"{getattr(row, name):,}" for name in columns]


def left_out(results: Results) -> dict[str, list[str]]:
    """The queries that each metric's mean leaves out, as text, by configuration.

    Empty if all metrics leave out the same queries as the first one, which the columns of counts describe.
    """
    rows = {row["config_id"]: overall(results, row["config_id"]) for row in distinct(results)}
    words = {config_id: [_left_out(mean) for mean in means] for config_id, means in rows.items()}
    return words if any(len(set(word)) > 1 for word in words.values()) else {}


def _left_out(mean: ConfigurationMetric) -> str:
    return (
        ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind in _LEFT_OUT if (count := getattr(mean, kind))) or NONE
    )


def metric_notes(results: Results) -> list[str]:
    """Notes on offline models that judged, and on geometric means."""
    geometric = [geometric_words(results, metric) for metric in results.metrics]
    return list(dict.fromkeys(filter(None, [*map(offline_words, results.metrics), *geometric])))


@dataclass(frozen=True)
class Slices:
    """The slices by one attribute."""

    attribute: str
    names: tuple[str, ...]

    @property
    def too_many(self) -> str:
        """A pointer to another table if there are too many slices for one here; else ""."""
        if self.by_rank or len(self.names) <= _MOST_SLICES:
            return ""
        return f"{self.attribute} has {len(self.names):,} values; see the table configuration_metrics"

    @property
    def by_rank(self) -> bool:
        """True if each configuration has its own queries in each slice."""
        return ranked_by(self.attribute) is not None

    def size(self, mean: ConfigurationMetric) -> str:
        """The number of queries behind a mean, if the heading cannot show it."""
        return f" ({mean.requested:,})" if self.by_rank else ""

    def headings(self, results: Results) -> list[str]:
        """The attribute's values, each with its number of queries if that is equal for all configurations."""
        if self.by_rank:
            return [value_of(name) for name in self.names]
        first = results.leaderboard()[0]["config_id"]
        rows = [(name, results.means[first, name, results.metrics[0]]) for name in self.names]
        return [f"{value_of(name)} ({row.requested})" for name, row in rows]


def slices_by_attribute(results: Results) -> Iterator[Slices]:
    names = [name for name in results.slices if name != ALL]
    for attribute in dict.fromkeys(map(grouping_of, names)):
        yield Slices(attribute, tuple(name for name in names if grouping_of(name) == attribute))


def best_by(results: Results, metric: str) -> str:
    """A text about configurations that may be the best by a metric, or have no value; "" if nothing is known."""
    sentences = " ".join(filter(None, (_comparison(results, metric), without_value(results, metric))))
    return f"By {metric}, {sentences}" if sentences else ""


def _comparison(results: Results, metric: str) -> str:
    rows = distinct_means(results, metric)
    ranked = {name: row for name, row in rows.items() if row.may_be_best is not None}
    if len(set(results.dialects)) > 1 or not ranked:
        return ""  # values by different tools' rules cannot be ranked against each other
    different = {row.equal_to or row.config_id for row in ranked.values()}
    if len(different) == 1:
        return "the configurations have equal values at every query."
    if any(row.is_unreliable for row in ranked.values()):
        return f"no decision is possible yet: there are fewer than {FEW_QUERIES} queries or clusters."
    may_be = [name for name, row in ranked.items() if row.may_be_best]
    level = results.confidence_of_best(len(may_be))
    if len(may_be) == 1:
        (best,) = may_be
        low, high = ranked[best].joint_low, ranked[best].joint_high
        picked = f"corrected for picking the best of {len(different)}"
        interval = "" if low is None else f" Its mean is {low:.3f} to {high:.3f}, {picked}."
        return f"{best} is the best with {level} confidence.{interval}"
    return (
        f"{len(may_be)} of {len(ranked)} show no significant difference from the best at {level}: {list_names(may_be)}."
    )


@dataclass(frozen=True)
class Significance:
    """Tests of differences between means over all queries."""

    letters: dict[str, str]
    better: frozenset[tuple[str, str, str]]
    tested: bool
    corrected: bool
    baseline: str | None
    level: float

    @classmethod
    def of(cls, results: Results) -> "Significance":
        shown = distinct(results)
        order = [row["config_id"] for row in shown]
        first = {row_id: row["config_id"] for row in shown for row_id in row["config_ids"]}
        letters = dict(zip(order, letters_for(len(order)), strict=True))
        statistics = results.run["statistics"]
        confidence = statistics["confidence"]
        tests = [row for row in results.comparisons if row.slice == ALL and row.corrected_p_value is not None]
        better = set()
        for row in tests:
            if row.is_significant(confidence):
                pair = (first[row.config_id], first[row.baseline])
                better.add((row.metric, *(pair if row.gain > 0.0 else reversed(pair))))
        complete = statistics["all_pairs"] or len(order) <= 2
        return cls(
            letters=letters,
            better=frozenset(better),
            tested=bool(tests),
            corrected=all(row.p_adjusted is not None for row in tests),
            baseline=None if complete or not tests else letters[first[tests[0].baseline]],
            level=significance_level(confidence),
        )

    def worse(self, config_id: str, metric: str) -> list[str]:
        """Letters of the configurations that `config_id` is significantly better than."""
        return [letter for other, letter in self.letters.items() if (metric, config_id, other) in self.better]

    def written(self, letters: list[str]) -> str:
        """Letters as one superscript, with commas if a configuration may have more than one letter."""
        return ("" if len(self.letters) <= len(string.ascii_lowercase) else ",").join(letters)

    @property
    def test(self) -> str:
        """The test and its correction, as text."""
        # Only Holm's correction sets `p_adjusted`.
        return f"paired randomisation test {'with Holm' if self.corrected else 'without'} correction"

    @property
    def pairs(self) -> str:
        """The tested pairs, as text."""
        return (
            "All pairs were tested."
            if self.baseline is None
            else f"Only pairs with the baseline, {self.baseline}, were tested."
        )


def letters_for(count: int) -> list[str]:
    """The first labels of the series a, b … z, aa, ab and so on.

    >>> [*letters_for(28)[:2], *letters_for(28)[25:]]
    ['a', 'b', 'z', 'aa', 'ab']
    """
    words = (
        "".join(letters)
        for size in itertools.count(1)
        for letters in itertools.product(string.ascii_lowercase, repeat=size)
    )
    return list(itertools.islice(words, count))
