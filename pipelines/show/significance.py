"""Significant differences between configurations as letters, the notation of papers and ranx."""

import itertools
import string
from dataclasses import dataclass

from rankbeam.pipelines.results.equals import distinct
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records.scores.rows import significance_level
from rankbeam.transforms.records.slices import ALL


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
        """The tests of a run."""
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
                better.add((row.metric, *(pair if (row.difference or 0.0) > 0.0 else reversed(pair))))
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
        """Letters of the configurations that one is significantly better than."""
        return [letter for other, letter in self.letters.items() if (metric, config_id, other) in self.better]

    def written(self, letters: list[str]) -> str:
        """Letters as one superscript; with commas where a configuration may have more than one letter."""
        return ("" if len(self.letters) <= len(string.ascii_lowercase) else ",").join(letters)

    @property
    def test(self) -> str:
        """The test and its correction, in words."""
        # Holm's correction is the only one that makes `p_adjusted`.
        return f"paired randomisation test {'with Holm' if self.corrected else 'without'} correction"

    @property
    def pairs(self) -> str:
        """Tested pairs, in words."""
        return (
            "All pairs were tested."
            if self.baseline is None
            else f"Only pairs with the baseline, {self.baseline}, were tested."
        )


def letters_for(count: int) -> list[str]:
    """The first letters of the series a, b … z, aa, ab and so on.

    >>> [*letters_for(28)[:2], *letters_for(28)[25:]]
    ['a', 'b', 'z', 'aa', 'ab']
    """
    words = (
        "".join(letters)
        for size in itertools.count(1)
        for letters in itertools.product(string.ascii_lowercase, repeat=size)
    )
    return list(itertools.islice(words, count))
