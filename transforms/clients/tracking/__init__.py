"""Experiment trackers, to which the results of finished runs are copied: one record for each configuration of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Trial:
    """A configuration with its parameters and means."""

    name: str
    run_id: str
    config_id: str
    started_at: datetime
    parameters: Mapping[str, str]
    metrics: Mapping[str, float]  # names, such as `ndcg_at_10`, and means
    tags: Mapping[str, str]  # further facts, by name

    @property
    def identity(self) -> str:
        """Names the trial in a tracker, so that it is there once."""
        return f"{self.run_id}-{self.config_id}"
