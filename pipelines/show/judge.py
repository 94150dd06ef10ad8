"""One line about each judge of a run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.judge.quality import by_judge


def judge_line(results: Results) -> str:
    """Who judged, how far it agrees with itself, and how many known items it got right; "" where nothing was judged."""
    return "\n".join(_line(rows) for rows in by_judge(results.judge_quality).values())


def _line(rows: Sequence[Mapping[str, Any]]) -> str:
    versions: Counter[str] = Counter()
    for row in rows:
        versions.update({version["model_version"]: version["judgements"] for version in row["model_versions"]})
    names = ", ".join(name for name in sorted(versions) if name != rows[0]["judge"])
    compared, questions = (sum(row[name] for row in rows) for name in ("compared", "sentinels"))
    parts = [f"judge {rows[0]['judge']}{f' ({names})' if names else ''}"]
    if compared:
        agreement = sum(row["agreement"] * row["compared"] for row in rows if row["compared"]) / compared
        parts.append(f"agrees with itself in {agreement:.1%} of {compared:,} repeated verdicts")
    if questions:
        right = sum(row["sentinels_right"] or 0 for row in rows)
        parts.append(f"{right} of {questions} known items right ({right / questions:.1%})")
    return " · ".join(parts)
