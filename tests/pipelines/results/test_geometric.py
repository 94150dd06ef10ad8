"""Geometric means are shown beside their logarithmic scale, in terminal, report and trec_eval's form."""

import math
import re
from pathlib import Path

import pytest
from support.runs import rankbeam

from rankbeam.pipelines.report.page import render
from rankbeam.pipelines.results.find import find_run
from rankbeam.transforms.records.slices import ALL

# ranks of the only relevant document; 0 for none
RANKS = {"good": (1, 2, 4, 0), "bad": (2, 4, 0, 0)}


def geometric(ranks: tuple[int, ...]) -> float:
    return math.exp(sum(math.log(1 / rank if rank else 0.00001) for rank in ranks) / len(ranks))


def test_the_geometric_mean_and_its_interval_are_shown_beside_the_scale(tmp_path: Path) -> None:
    queries = [f"q{number}" for number in range(len(RANKS["good"]))]
    (tmp_path / "qrels").write_text("".join(f"{query} 0 right 1\n" for query in queries))
    for name, ranks in RANKS.items():
        lines = [
            f"{query} Q0 {'right' if place == rank else f'd{place}'} {place} {-place} {name}\n"
            for query, rank in zip(queries, ranks, strict=True)
            for place in range(1, 6)
        ]
        (tmp_path / name).write_text("".join(lines))
    files = [tmp_path / "qrels", *(tmp_path / name for name in RANKS)]
    shown = rankbeam("score", *files, "-m", "gm_map", "--output", tmp_path / "out")
    assert shown.exit_code == 0, shown.stderr
    results = find_run(str(tmp_path / "out"), None)
    report = render(results)
    for configuration in results.configurations:
        expected, row = geometric(RANKS[configuration["name"]]), results.means[configuration["config_id"], ALL, "logAP"]
        mean, low, high = (0.00001 ** (1 - (end or 0.0)) for end in (row.mean, row.ci_low, row.ci_high))
        assert mean == pytest.approx(expected)
        words = f"{configuration['name']} {expected:.4f} [{low:.3f}, {high:.3f}]"
        assert words in " ".join(shown.stdout.split())
        assert words in report
    printed = rankbeam("score", *files, "-m", "gm_map", "--format", "trec", "--per-query").stdout
    assert re.findall(r"gm_map\s+(\S+)\s+(\S+)", printed) == [
        ("all", f"{geometric(RANKS[name]):.4f}") for name in RANKS
    ]
