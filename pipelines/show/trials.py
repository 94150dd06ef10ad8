"""The configurations of a finished run, as trackers store them."""

import json
import math
import re

from rankbeam.pipelines.results.leaderboard import flat_parameters
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.tracking import Trial
from rankbeam.transforms.records.slices import ALL

_OTHER = re.compile(r"[^\w.-]+")


def trials_of(results: Results) -> list[Trial]:
    """One trial for each configuration, with means over all queries and the ends of their intervals."""
    return [_trial(results, row["config_id"], row["name"], row["parameters"]) for row in results.configurations]


def tracked_name(metric: str) -> str:
    """A metric's name with only letters, digits, "_", "-" and ".": trackers refuse "@" and brackets.

    >>> tracked_name("nDCG@10"), tracked_name("P(rel=2)@5")
    ('nDCG_at_10', 'P_rel_2_at_5')
    """
    return _OTHER.sub("_", metric.replace(")@", "@").replace("@", "_at_")).strip("_")


def _trial(results: Results, config_id: str, name: str, parameters: str) -> Trial:
    means: dict[str, float] = {}
    for metric in results.metrics:
        row = results.means.get((config_id, ALL, metric))
        values = {} if row is None else {"": row.mean, "_ci_low": row.ci_low, "_ci_high": row.ci_high}
        known = {end: value for end, value in values.items() if value is not None and math.isfinite(value)}
        means |= {f"{tracked_name(metric)}{end}": value for end, value in known.items()}
    values_by_path = flat_parameters(json.loads(parameters))
    texts = {path: value if isinstance(value, str) else json.dumps(value) for path, value in values_by_path.items()}
    identity = results.identity()
    return Trial(
        name,
        results.run_id,
        config_id,
        results.execution[1],
        texts,
        means,
        {f"rankbeam.{key}": identity[key] for key in ("run_id", "experiment", "output", "dataset_fingerprint")},
    )
