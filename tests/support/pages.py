"""Runs to make reports of, hostile and large ones, written as tables; and a parser that judges pages."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records import tables

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    '"><img src=x onerror=alert(3)>',
    "'><svg onload=alert(4)>",
    "{{7*7}}{% raw %}${7*7}",
    "line\u2028separator\u2029paragraph",
    "-->]]><!--<style>*{display:none}</style>",
    "</title></pre></textarea></select><iframe src=javascript:alert(5)>",
    "&lt;b&gt; &amp; \u202ereversed\u202c \x07bell",
)
ALL_HOSTILE = " ".join(HOSTILE)


@dataclass
class Page(HTMLParser):
    """The content of a page: elements with their attributes, and texts.

    Attributes:
        elements: names and attributes, in order.
        data: the JSON that the page holds.
        text: all that is shown.
    """

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    data: Any = None
    text: str = ""

    @classmethod
    def of(cls, html: str) -> "Page":
        """Parse a page."""
        page = cls()
        HTMLParser.__init__(page)
        page._inside: list[tuple[str, dict[str, str | None]]] = []
        page.feed(html)
        page.close()
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside.append(self.elements[-1])

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.text += data
        elif self._inside[-1][1].get("id") == "data":
            self.data = json.loads(data)

    def shape(self) -> set[tuple[str, str]]:
        """Every pair of an element and an attribute there is."""
        return {(name, attribute) for name, attributes in self.elements for attribute in (*attributes, "")}


@dataclass(frozen=True)
class ArrayRun:
    """A run made of arrays.

    Attributes:
        queries: ids and texts.
        configurations: names.
        metrics: names.
        values: float64[configurations, queries, metrics].
        documents: text of every retrieved document; None writes no rankings.
        slices: an attribute's name, and its value at each query.
        words: text for everything else that users name: experiment, failures, warnings, document ids.
        all_pairs: every pair is compared, not only those with the first configuration.
        half_width: half the width of the interval of a mean.
    """

    queries: Sequence[tuple[str, str]]
    configurations: Sequence[str]
    metrics: Sequence[str]
    values: np.ndarray
    documents: Sequence[str] | None
    slices: tuple[str, Sequence[str]]
    words: str
    all_pairs: bool = False
    half_width: float = 0.05

    def write(self, output: Path, run_id: str = "made") -> Results:
        """Write all tables."""
        common = {"run_id": run_id, "experiment": self.words, "started_at": datetime(2026, 1, 2, tzinfo=UTC)}
        for name, rows in self._tables().items():
            (output / name / run_id).mkdir(parents=True)
            whole = pa.Table.from_pylist([{**common, **row} for row in rows], tables.TABLES[name])
            pq.write_table(whole, output / name / run_id / "part-00000-of-00001.parquet")
        return Results(str(output), run_id)

    def _tables(self) -> dict[str, list[dict[str, Any]]]:
        return {
            "runs": [self._run()],
            "configurations": [
                {
                    "config_id": f"c{place}",
                    "name": name,
                    "position": place,
                    "retriever": self.words,
                    "parameters": json.dumps({"retriever": {"type": self.words, self.words: place}, "top_k": 10}),
                }
                for place, name in enumerate(self.configurations)
            ],
            "rankings": list(self._rankings()) if self.documents is not None else [],
            "query_metrics": list(self._query_metrics()),
            "configuration_metrics": list(self._means()),
            "comparisons": list(self._comparisons()),
            "failures": [
                {
                    "config_id": "c0",
                    "query_id": self.queries[0][0],
                    **dict.fromkeys(("stage", "kind", "message"), self.words),
                    "attempts": 3,
                }
            ],
        }

    def _run(self) -> dict[str, Any]:
        statistics = {"replicates": 10, "confidence": 0.95, "seed": 0, "all_pairs": False, "min_slice": 1}
        return {
            "state": "done",
            "finished_at": datetime(2026, 1, 2, tzinfo=UTC),
            "experiment_yaml": f"name: {self.words}\n",
            "dataset_fingerprint": self.words,
            "dataset": json.dumps({"queries": len(self.queries), "judged": len(self.queries)}),
            "versions": json.dumps({"rankbeam": self.words, self.words: "1"}),
            "statistics": json.dumps(statistics),
            **dict.fromkeys(("calls", "ledger_hits", "failures"), 1),
            "warnings": [self.words],
        }

    def _rankings(self) -> Any:
        for place in range(len(self.configurations)):
            for query_id, _ in self.queries:
                documents = [
                    {
                        "rank": rank,
                        "doc_id": f"{self.words}{rank}",
                        "score": 1.0 / rank,
                        "grade": float(rank % 3),
                        "text": text,
                    }
                    for rank, text in enumerate(self.documents or (), 1)
                ]
                yield {"config_id": f"c{place}", "query_id": query_id, "documents": documents}

    def _query_metrics(self) -> Any:
        attribute, groups = self.slices
        for place, values in enumerate(self.values.tolist()):
            for (query_id, text), numbers, group in zip(self.queries, values, groups, strict=True):
                known = [(name, value) for name, value in zip(self.metrics, numbers, strict=True) if value == value]
                yield {
                    "config_id": f"c{place}",
                    "query_id": query_id,
                    "text": text,
                    "status": "ok" if known else "failed",
                    "slices": [{"name": attribute, "value": group}],
                    "metrics": [{"metric": name, "value": value} for name, value in known],
                }

    def _means(self) -> Any:
        attribute, groups = self.slices
        members = {"all": np.ones(len(groups), bool)}
        members |= {f"{attribute}={group}": np.array(groups) == group for group in dict.fromkeys(groups)}
        for place, values in enumerate(self.values):
            for name, inside in members.items():
                for column, metric in enumerate(self.metrics):
                    known = values[inside, column][~np.isnan(values[inside, column])]
                    mean = float(known.mean()) if len(known) else None
                    ends = (None, None) if mean is None else (mean - self.half_width, mean + self.half_width)
                    yield {
                        "config_id": f"c{place}",
                        "slice": name,
                        "metric": metric,
                        "mean": mean,
                        "ci_low": ends[0],
                        "ci_high": ends[1],
                        "queries": len(known),
                        "failed": int(inside.sum()) - len(known),
                        "empty": 0,
                        "missing": 0,
                        "lowest": 0.0,
                        "highest": 1.0,
                    }

    def _comparisons(self) -> Any:
        for other in range(len(self.configurations) if self.all_pairs else 1):
            for one in range(other + 1, len(self.configurations)):
                for column, metric in enumerate(self.metrics):
                    differences = self.values[one, :, column] - self.values[other, :, column]
                    names = {"config_id": f"c{one}", "baseline": f"c{other}", "slice": "all", "metric": metric}
                    yield names | _compared(differences[~np.isnan(differences)])


def _compared(differences: np.ndarray) -> dict[str, Any]:
    mean = float(differences.mean()) if len(differences) else None
    return {
        "difference": mean,
        "ci_low": None if mean is None else mean - 0.02,
        "ci_high": None if mean is None else mean + 0.02,
        "p_value": None if mean is None else 0.03,
        "queries": len(differences),
        "unpaired": 0,
        "wins": int((differences > 0).sum()),
        "ties": int((differences == 0).sum()),
        "losses": int((differences < 0).sum()),
    }


def hostile_run(output: Path, words: Sequence[str] = HOSTILE) -> Results:
    """A run whose every text is one that must not become part of a page."""
    whole = " ".join(words)
    queries = [(f"{word}{place}", word) for place, word in enumerate(words)]
    values = np.random.default_rng(0).random((3, len(queries), 2))
    values[:, 0] = np.nan
    names = [f"{whole}:x=1", f"{whole}:x=2", words[0]]
    return ArrayRun(queries, names, [words[0], words[2]], values, words, (whole, words), whole).write(output)


def large_run(output: Path, queries: int, configurations: int = 5, metrics: int = 4) -> Results:
    """A run of many queries, whose first metric takes all values, and the others few."""
    random = np.random.default_rng(0)
    values = random.beta(0.6, 0.6, (configurations, queries, metrics))
    values[:, :, 1:] = np.round(values[:, :, 1:] * 10) / 10
    names = [f"system-{place}" for place in range(configurations)]
    rows = [(f"q{place:06}", f"how do I find number {place} in the list of things") for place in range(queries)]
    groups = [f"group {place % 7}" for place in range(queries)]
    return ArrayRun(
        rows, names, ["nDCG@10", "P@10", "R@10", "RR@10"][:metrics], values, None, ("group", groups), "large"
    ).write(output)


def degenerate_run(
    output: Path, value: float, queries: int = 1, configurations: int = 3, metrics: int = 1, half_width: float = 0.0
) -> Results:
    """A run whose every value is the same, or NaN: every call failed. Numbers in the names make a sweep."""
    values = np.full((configurations, queries, metrics), value)
    rows = [(f"q{place}", "text") for place in range(queries)]
    names = [f"rag-{256 << place}" for place in range(configurations)]
    metric_names = ["nDCG@10", "P@10", "R@10"][:metrics]
    return ArrayRun(
        rows, names, metric_names, values, ["text"], ("kind", ["a"] * queries), "same", half_width=half_width
    ).write(output)
