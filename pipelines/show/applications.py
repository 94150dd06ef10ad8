"""Latency, tokens and cost of applications, by their answers: also where the ledger answered."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rankbeam.pipelines.results.equals import distinct
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.usage import seconds
from rankbeam.pipelines.show.tabular import Table
from rankbeam.transforms.clients.retrievers.replay import TRACES

_COLUMNS = ("config_id", "seconds", "first_token_s", "input_tokens", "output_tokens", "cost")


def applications_table(results: Results) -> Table | None:
    """Durations, tokens and cost of each application; None where none was asked."""
    names = {row["config_id"]: row["name"] for row in distinct(results) if _is_asked(row)}
    if not names:
        return None
    answers = results.table("answers", _COLUMNS)
    answers = answers.filter(pc.is_valid(answers["seconds"]))
    rows = [_row(name, answers.filter(pc.equal(answers["config_id"], config_id))) for config_id, name in names.items()]
    head = ["application", "answers", "p50", "p95", "first token p50", "input tokens", "output tokens", "cost"]
    used = [place for place in range(len(head)) if place < 4 or any(row[place] != "–" for row in rows)]
    return Table([head[place] for place in used], [[row[place] for place in used] for row in rows], 1, drop=["answers"])


def _is_asked(row: Mapping[str, Any]) -> bool:
    answers = json.loads(row["parameters"]).get("answers")
    return isinstance(answers, dict) and answers.get("type") not in ("replay", TRACES)


def _row(name: str, answers: pa.Table) -> Sequence[str]:
    tokens = [pc.sum(answers[column]).as_py() or 0 for column in ("input_tokens", "output_tokens")]
    cost = pc.sum(answers["cost"]).as_py()
    return [
        name,
        f"{answers.num_rows:,}",
        seconds(_quantile(answers["seconds"], 0.5)),
        seconds(_quantile(answers["seconds"], 0.95)),
        seconds(_quantile(answers["first_token_s"], 0.5)),
        *(f"{count:,}" if count else "–" for count in tokens),
        "–" if cost is None else f"{cost:,.4g}",
    ]


def _quantile(values: pa.ChunkedArray, share: float) -> float | None:
    """The smallest value that this share of all do not exceed; None without values."""
    result: float | None = pc.quantile(values, share, interpolation="higher")[0].as_py() if len(values) else None
    return result
