"""The worker: runs a staged pipeline in this process, and says what was counted and where our code came from.

It runs as a script, in an environment of its own, and imports nothing of the checkout.
"""

import json
import sys
from pathlib import Path

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_runner_api_pb2 as protos
from apache_beam.runners.portability.fn_api_runner import FnApiRunner


def run(pipeline: protos.Pipeline, options: PipelineOptions) -> list[dict[str, object]]:
    """Run a pipeline; returns its counters."""
    for environment in pipeline.components.environments.values():
        environment.urn, environment.payload = python_urns.EMBEDDED_PYTHON, b""
        del environment.dependencies[:]
    result = FnApiRunner().run_via_runner_api(pipeline, options)
    result.wait_until_finish()
    return [
        {
            "step": counter.key.step,
            "namespace": counter.key.metric.namespace,
            "name": counter.key.metric.name,
            "value": counter.result,
        }
        for counter in result.metrics().query()["counters"]
    ]


def number(text: str) -> float | int:
    """A number of JSON: those of protobuf are all floating, and options want whole ones."""
    value = float(text)
    return int(value) if value.is_integer() else value


def modules() -> dict[str, str]:
    """The file of every module of ours that was imported."""
    return {name: str(module.__file__) for name, module in sys.modules.items() if name.partition(".")[0] == "rankbeam"}


if __name__ == "__main__":
    path, options, answer = sys.argv[1:]
    pipeline_options = PipelineOptions.from_dictionary(json.loads(options, parse_float=number))
    counters = run(protos.Pipeline.FromString(Path(path).read_bytes()), pipeline_options)
    packages = sorted({name.partition(".")[0] for name in sys.modules})
    Path(answer).write_text(json.dumps({"counters": counters, "modules": modules(), "packages": packages}))
