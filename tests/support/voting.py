"""Experiments with several judges, and the values that come of them."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from support.standin_answers import model, write_experiment
from support.standins import Standin

from rankbeam.pipelines.results.run import Results

JUDGES = ["a", "b", "c"]
METRICS = ["Faithfulness", "ContextRelevance", "Refused", "AnswerRelevance", "Tone"]
CRITERIA = {"Tone": {"question": "Is it polite?", "scale": {"yes": 1, "so so": 0.5, "no": 0}}}
SUPPORT = ["contradicted", "not_stated", "supported"]


def experiment(folder: Path, server: Standin, judge: Any, **more: Any) -> str:
    """Write an experiment with three judges to choose from."""
    services = {"m": model(server, "openai")}
    services |= {name: model(server, "openai") | {"model": f"judge-{name}"} for name in JUDGES}
    quota = {"requests_per_minute": 60_000, "price_per_million": {"input": 1.0, "output": 1.0}}
    return write_experiment(
        folder, services["m"], {}, services=services, quotas=dict.fromkeys(services, quota),
        **{"metrics": METRICS, "judge": judge} | more,
    )  # fmt: skip


def values(folder: Path, run_id: str = "r1") -> dict[str, dict[str, float]]:
    """The values of a run, by metric and query."""
    result: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for row in Results(str(folder / "out"), run_id).table("query_metrics").to_pylist():
        for cell in row["metrics"]:
            result[cell["metric"]][row["query_id"]] = cell["value"]
    return result
