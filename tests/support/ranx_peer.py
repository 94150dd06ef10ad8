"""ranx's comparison of several runs, as JSON on stdout; run by the Python that has it."""

import gzip
import json
import sys
from pathlib import Path

from ranx import Qrels, Run, compare


def rows(path: str) -> list[list[str]]:
    """The fields of a compressed TREC file."""
    with gzip.open(path, "rt") as file:
        return [line.split() for line in file]


def main() -> None:
    """Compare runs by two tests: `ranx_peer.py QRELS RUN RUN …`."""
    judged: dict[str, dict[str, int]] = {}
    for query, _, document, grade in rows(sys.argv[1]):
        judged.setdefault(query, {})[document] = max(0, int(grade))
    runs = []
    for path in sys.argv[2:]:
        scores: dict[str, dict[str, float]] = {}
        for query, _, document, _, score, _ in rows(path):
            scores.setdefault(query, {})[document] = float(score)
        runs.append(Run(scores, name=Path(path).name))
    results = {}
    for test in ("student", "fisher"):
        report = compare(
            Qrels(judged),
            runs,
            ["map", "precision@10"],
            stat_test=test,
            n_permutations=10_000,
            max_p=0.05,
            make_comparable=True,
        )
        names = report.model_names
        results[test] = [
            [one, other, metric, *pair_result(report, one, other, metric)]
            for one in names for other in names if one < other for metric in report.metrics
        ]  # fmt: skip
    json.dump(results, sys.stdout)


def pair_result(report: object, one: str, other: str, metric: str) -> list[object]:
    """p-value and significance of one pair."""
    comparison = report.comparisons[frozenset([one, other])][metric]
    return [float(comparison["p_value"]), bool(comparison["significant"])]


if __name__ == "__main__":
    main()
