"""Comparisons beside ranx, whose letters people know; it lives in an environment of its own, as it brings Numba."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.data import REPOSITORY, SHARED_DATA, needs_shared_data
from support.runs import run_experiment

ROBUST = SHARED_DATA / "robust03"
RUNS = ("input.UIUC03Rd1.gz", "input.humR03dc.gz", "input.pircRBa1.gz")  # P@10 does not depend on the order of ties
METRICS = {"AP": "map", "P@10": "precision@10"}
CLOSE = {"map": 0.02, "precision@10": 1e-6}  # ties: the fourth digit of a mean AP
PEER = REPOSITORY / ".venv-peers" / "bin" / "python"


def has_ranx() -> bool:
    return PEER.exists() and subprocess.run([PEER, "-c", "import ranx"], capture_output=True).returncode == 0


@needs_shared_data
@pytest.mark.skipif(not has_ranx(), reason="ranx is not installed; `make .venv-peers/.installed` does that")
def test_p_values_and_verdicts_are_those_of_ranx(tmp_path: Path) -> None:
    paths = [str(ROBUST / "runs" / name) for name in RUNS]
    script = REPOSITORY / "tests" / "support" / "ranx_peer.py"
    result = subprocess.run([PEER, script, ROBUST / "qrels.txt.gz", *paths], capture_output=True, text=True, check=True)
    theirs = json.loads(result.stdout)
    results = run_experiment(
        tmp_path,
        {
            "dataset": {"qrels": str(ROBUST / "qrels.txt.gz")},
            "configurations": [
                {"name": name, "retriever": {"type": "run_file", "path": path}}
                for name, path in zip(RUNS, paths, strict=True)
            ],
            "metrics": list(METRICS),
            "statistics": {"pairs": "all"},
        },
    )
    names = {row["config_id"]: row["name"] for row in results.configurations}
    ours = {
        (frozenset((names[row["config_id"]], names[row["baseline"]])), METRICS[row["metric"]]): row
        for row in results.table("comparisons").to_pylist()
    }
    assert len(theirs["student"]) == len(theirs["fisher"]) == len(ours) == 6
    for one, other, metric, p_value, _ in theirs["student"]:
        assert ours[frozenset((one, other)), metric]["t_p_value"] == pytest.approx(p_value, rel=CLOSE[metric], abs=0.0)
    for one, other, metric, p_value, significant in theirs["fisher"]:
        actual = ours[frozenset((one, other)), metric]["p_value"]
        noise = 4 * np.sqrt(max(p_value * (1 - p_value), 1e-4) / 10_000 * 2) + 2e-4
        assert actual == pytest.approx(p_value, abs=noise)
        if abs(actual - 0.05) > noise:
            assert (actual <= 0.05) == significant
