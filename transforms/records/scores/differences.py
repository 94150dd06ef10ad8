"""The difference of two configurations, query by query: the state that merges, and the statistics drawn from it."""

from collections.abc import Sequence
from dataclasses import dataclass

from rankbeam.transforms.kernels.arrays import FloatArray, HashArray, IntArray
from rankbeam.transforms.kernels.statistics.clusters import Clustered
from rankbeam.transforms.kernels.statistics.corrections import detectable_difference, effect_size
from rankbeam.transforms.kernels.statistics.estimates import DifferenceEstimate
from rankbeam.transforms.kernels.statistics.intervals import student_p_value
from rankbeam.transforms.kernels.statistics.moments import Moments
from rankbeam.transforms.kernels.statistics.randomisation import Blocks
from rankbeam.transforms.records.metrics.evaluation import Statistics
from rankbeam.transforms.records.metrics.panels import Range
from rankbeam.transforms.records.scores.means import or_null
from rankbeam.transforms.records.scores.rows import Difference


@dataclass(frozen=True)
class PairedAggregate:
    """The differences of two configurations over the queries scored for both, for all metrics of a panel at once."""

    moments: Moments
    wins: tuple[int, ...]  # per metric, queries in which the difference is above 0
    losses: tuple[int, ...]  # per metric, queries in which it is below 0
    blocks: Blocks
    unpaired: int = 0

    @classmethod
    def zero(cls, metrics: int) -> "PairedAggregate":
        return cls(Moments.zero(metrics), (0,) * metrics, (0,) * metrics, Blocks.zero(metrics))

    @classmethod
    def of(cls, differences: FloatArray, hashes: HashArray, units: IntArray, unpaired: int = 0) -> "PairedAggregate":
        """The state of n queries.

        Args:
            differences: float64[n, m], configuration minus baseline.
            hashes: uint64[n], of the queries' ids.
            units: int64[n, m], the differences in whole numbers.
            unpaired: number of further queries that are scored for only one of the two.
        """
        wins, losses = (differences > 0).sum(axis=0), (differences < 0).sum(axis=0)
        blocks = Blocks.of(hashes, units)
        return cls(Moments.of(differences), tuple(wins.tolist()), tuple(losses.tolist()), blocks, unpaired)

    def merge(self, other: "PairedAggregate") -> "PairedAggregate":
        return PairedAggregate(
            self.moments.merge(other.moments),
            tuple(a + b for a, b in zip(self.wins, other.wins, strict=True)),
            tuple(a + b for a, b in zip(self.losses, other.losses, strict=True)),
            self.blocks.merge(other.blocks),
            self.unpaired + other.unpaired,
        )

    def estimates(
        self, ranges: Sequence[Range], clusters: Sequence[Clustered] | None = None
    ) -> list[DifferenceEstimate]:
        """The estimate of every metric's mean difference; by clusters where there are any."""
        moments = self.moments
        columns = zip(
            moments.means(),
            moments.standard_errors(),
            moments.lowest,
            moments.highest,
            [None if highest is None else highest - lowest for lowest, highest in ranges],
            self.wins,
            self.losses,
            strict=True,
        )
        estimates = [
            DifferenceEstimate(moments.count, mean, error, low, high, width, wins + losses)
            for mean, error, low, high, width, wins, losses in columns
        ]
        if clusters is None:
            return estimates
        return [
            DifferenceEstimate(by.count, plain.mean, by.standard_error, by.lowest, by.highest, plain.width, by.events)
            for plain, by in zip(estimates, clusters, strict=True)
        ]

    def result(
        self,
        ranges: Sequence[Range],
        replicates: FloatArray,
        statistics: Statistics,
        clusters: Sequence[Clustered] | None = None,
    ) -> list[Difference]:
        """Difference, interval and tests of every metric.

        Args:
            ranges: per metric, the values that a query can have.
            replicates: float64[m, b], the bootstrap's differences; without any, intervals are Student's.
            statistics: confidence and seed.
            clusters: per metric, the statistics by cluster; None without clusters.
        """
        count = self.moments.count
        tested = self.blocks.test(statistics.seed)
        estimates, plain_errors = self.estimates(ranges, clusters), self.moments.standard_errors()
        rows = zip(
            estimates,
            plain_errors,
            self.wins,
            self.losses,
            tested.p_values,
            tested.methods,
            replicates,
            strict=True,
        )
        differences = []
        for estimate, plain_error, wins, losses, p_value, method, drawn in rows:
            mean, error = estimate.mean, estimate.standard_error
            low, high = estimate.interval(drawn, statistics.confidence)
            differences.append(
                Difference(
                    difference=or_null(mean),
                    ci_low=or_null(low),
                    ci_high=or_null(high),
                    std_error=or_null(error),
                    p_value=or_null(float(p_value)),
                    t_p_value=or_null(student_p_value(mean, error, estimate.count)),
                    effect_size=or_null(effect_size(mean, plain_error, count)),
                    detectable=or_null(detectable_difference(error, estimate.count)),
                    queries=count,
                    unpaired=self.unpaired,
                    wins=wins,
                    ties=count - wins - losses,
                    losses=losses,
                    p_method=method,
                    clusters=None if clusters is None else estimate.count,
                )
            )
        return differences
