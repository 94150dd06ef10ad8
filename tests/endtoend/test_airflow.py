"""Airflow itself runs nights of the DAG in deploy/airflow, over the example."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.data import REPOSITORY

from rankbeam.pipelines.results.find import finished_runs

AIRFLOW = REPOSITORY / ".venv-airflow" / "bin" / "airflow"
pytestmark = [
    pytest.mark.campaign,
    pytest.mark.skipif(not AIRFLOW.exists(), reason="Airflow is not installed: make airflow-test"),
]


def test_nights_of_the_dag(tmp_path: Path) -> None:
    (tmp_path / "dags").mkdir()
    shutil.copy(REPOSITORY / "deploy" / "airflow" / "rankbeam_nightly.py", tmp_path / "dags")
    shutil.copytree(REPOSITORY / "examples" / "helpdesk", tmp_path / "helpdesk")
    environment = os.environ | {
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_VAR_RANKBEAM_EXPERIMENT": str(tmp_path / "helpdesk" / "experiment.yaml"),
        "AIRFLOW_VAR_RANKBEAM_OUTPUT": str(tmp_path / "out"),
        "AIRFLOW_VAR_RANKBEAM_COMMAND": str(Path(sys.executable).with_name("rankbeam")),
    }

    def airflow(*words: str) -> str:
        done = subprocess.run([AIRFLOW, *words], env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def night(date: str, at_least: float) -> dict[str, str]:
        path = tmp_path / "helpdesk" / "experiment.yaml"
        gate = {"metric": "nDCG@10", "configuration": "bm25", "at_least": at_least}
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"gates": [gate]}))
        log = airflow("dags", "test", "rankbeam_nightly", date)
        marks = re.findall(r"Marking task as (\w+)\. dag_id=rankbeam_nightly, task_id=(\w+)", log)
        assert marks, log
        return {name: state for state, name in marks}

    airflow("db", "migrate")
    good = dict.fromkeys(("evaluate", "gate", "monitor", "trend"), "SUCCESS")
    assert night("2026-01-05", 0.5) == good
    assert night("2026-01-06", 0.99) == good | {"gate": "FAILED"}
    nights = [f"rankbeam_nightly-2026010{day}T000000" for day in (5, 6)]
    assert [run.run_id for run in finished_runs(str(tmp_path / "out"))] == nights
    assert night("2026-01-06", 0.5) == good  # cleared and run again, it replaces its rows
    assert [run.run_id for run in finished_runs(str(tmp_path / "out"))] == nights
