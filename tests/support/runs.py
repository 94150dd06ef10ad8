"""Run experiments through the public entry points, and read back what they wrote."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from click.testing import CliRunner, Result

from rankbeam.pipelines.cli import main
from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run.evaluate import new_run, run
from rankbeam.pipelines.run.options import pipeline_options


def rankbeam(*arguments: object) -> Result:
    """The command line, in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


def run_experiment(
    folder: Path, experiment: Mapping[str, Any], run_id: str = "run", beam_options: Sequence[str] = ()
) -> Results:
    """Write an experiment into a folder, run it, and return its results."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump({"name": "test", "output": {"path": "out"}, **experiment}), encoding="utf-8")
    return evaluated(path, run_id, beam_options=beam_options)


def evaluated(
    path: str | Path, run_id: str = "run", output: str | Path | None = None, beam_options: Sequence[str] = ()
) -> Results:
    """Run an experiment file; the command also makes a DuckDB file and a report of the tables, and takes twice as long.

    Args:
        path: the experiment.
        run_id: id of the run.
        output: folder for its tables, whatever the experiment says.
        beam_options: options of Apache Beam.
    """
    loaded = load_experiment(str(path), None if output is None else str(output))
    return run(loaded, new_run(loaded, run_id), pipeline_options(beam_options))


def query_values(results: Results) -> dict[str, dict[str, dict[str, float]]]:
    """configuration → query → metric → value."""
    return {
        row["name"]: {query["query_id"]: query["metrics"] for query in results.query_metrics(row["config_id"])}
        for row in results.configurations
    }


def without_run(table: pa.Table) -> list[str]:
    """The rows of a table in one order, as exact text, without what differs between two runs."""
    names = [name for name in table.column_names if name not in ("run_id", "started_at")]
    return sorted(json.dumps(row, sort_keys=True, default=repr) for row in table.select(names).to_pylist())
