"""The changes that raise no alarm, and the verdicts on changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rankbeam.pipelines.monitor.changes import Change

FELL, ROSE, STEADY, UNKNOWN = "fell", "rose", "no change", "unknown"


class Tolerance(NamedTuple):
    """The change of a metric that raises no alarm."""

    size: float = 0.0  # tolerated fall or rise
    is_of_rise: bool = False  # True if a rise is alarming

    def state(self, change: Change) -> str:
        """Verdict on a change: it counts if a whole interval is beyond the tolerance."""
        if change.lowest_high is None or change.highest_low is None:
            return UNKNOWN
        states = [FELL] if change.lowest_high < -self.size else []
        states += [ROSE] if change.highest_low > self.size else []
        return states[-1 if self.is_of_rise else 0] if states else STEADY  # if both, the alarming one

    def is_alarmed_by(self, change: Change) -> bool:
        """Return whether a change is beyond the tolerance, in the alarming direction."""
        return self.state(change) == (ROSE if self.is_of_rise else FELL)


@dataclass(frozen=True)
class Tolerances:
    """The tolerances of all metrics: those of gates on the value `monitor`, else the default."""

    default: float = 0.0
    lower_is_better: frozenset[str] = frozenset()  # the metrics of which a rise is alarming by default
    by_name: Mapping[tuple[str, str], Sequence[Tolerance]] = field(default_factory=dict)  # of a configuration's metric

    def state(self, change: Change) -> str:
        return self.of_change(change).state(change)

    def is_alarming(self, change: Change) -> bool:
        return self.of_change(change).is_alarmed_by(change)

    def of_change(self, change: Change) -> Tolerance:
        """The tolerance of a change; of several, the first one that it exceeds, else the smallest."""
        default = Tolerance(self.default, change.metric in self.lower_is_better)
        tolerances = self.by_name.get((change.configuration, change.metric), [default])
        return next((one for one in tolerances if one.is_alarmed_by(change)), min(tolerances))
