"""Run a pipeline, and look at what its collections hold."""

import pickle
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from rankbeam.pipelines.local.runner import find_input_error


def run(folder: Path, build: Callable[[beam.Pipeline], Sequence[beam.PCollection]]) -> list[list[object]]:
    """Run a pipeline; returns the elements of the collections that `build` returns, in no order."""
    pipeline = beam.Pipeline(FnApiRunner())
    outputs = []
    for place, collection in enumerate(build(pipeline)):
        outputs.append(Path(tempfile.mkdtemp(dir=folder)))
        _ = collection | f"Keep{place}" >> beam.Map(_keep, str(outputs[-1]))
    try:
        pipeline.run().wait_until_finish()
    except Exception as error:
        raise find_input_error(error) or error from error
    return [[pickle.loads(path.read_bytes()) for path in output.iterdir()] for output in outputs]  # noqa: S301  our own


def _keep(element: object, folder: str) -> None:
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        file.write(pickle.dumps(element))
