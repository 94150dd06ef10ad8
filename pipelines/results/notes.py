"""Notes on metrics: judges and embeddings without a language model, and geometric means beside logarithmic ones."""

import re

from rankbeam.pipelines.results.equals import distinct
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.kernels.ranking.geometric import geometric_mean
from rankbeam.transforms.records.metrics.definitions import METRICS
from rankbeam.transforms.records.scores.rows import Comparison, ConfigurationMetric
from rankbeam.transforms.records.slices import ALL

_WHO = re.compile(r"[(,](judge|embeddings)=([\w.-]+)[,)]")  # what is no metric, in a damaged table, has none
_MOST = 8


def doubt(row: ConfigurationMetric | Comparison) -> str:
    """Mark after an interval over few queries; "" after others."""
    return "‡" if row.is_unreliable else ""


def offline_words(metric: str) -> str:
    """Name of the offline model that judged or embedded for a metric; "" for others.

    >>> offline_words("Faithfulness(judge=lexical)")
    'judge=lexical: word overlap, no language model'
    >>> offline_words("nDCG(gain=exp)@10"), offline_words("AnswerSimilarity(embeddings=e5)")
    ('', '')
    """
    models = [
        (option, name, MODELS.load(name).offline) for option, name in _WHO.findall(metric) if name in MODELS.types
    ]
    return "; ".join(f"{option}={name}: {offline}" for option, name, offline in models if offline)


def geometric_words(results: Results, metric: str) -> str:
    """The geometric means of the first configurations with their intervals; "" for other metrics."""
    name, *_ = re.split("[(@]", metric)
    if name not in METRICS or not METRICS[name].geometric:
        return ""
    rows = distinct(results)
    means = [f"{row['name']} {_written(results.means[row['config_id'], ALL, metric])}" for row in rows[:_MOST]]
    known = "; ".join(means) + ("; …" if len(rows) > _MOST else "")
    return f"{metric} is on a logarithmic scale, where 0.0602 more is twice the geometric mean (gm_map): {known}"


def _written(row: ConfigurationMetric) -> str:
    if row.mean is None:
        return row.absent
    interval = ""
    if row.ci_low is not None and row.ci_high is not None:
        interval = f" [{geometric_mean(row.ci_low):.3f}, {geometric_mean(row.ci_high):.3f}]"
    return f"{geometric_mean(row.mean):.4f}{interval}"
