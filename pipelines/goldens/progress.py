"""Live progress of making a benchmark."""

from dataclasses import dataclass

from rankbeam.pipelines.local.progress import Progress, clock
from rankbeam.transforms.records.counters import Counts


@dataclass
class CallsOfPools(Progress):
    """The calls of every quota pool."""

    doing: str = "writing questions"

    def lines(self, counts: Counts, seconds: float) -> list[str]:
        """A line for every pool, and the time."""
        return [*super().lines(counts, seconds)[1:], f"{self.doing} · {clock(seconds)}"]
