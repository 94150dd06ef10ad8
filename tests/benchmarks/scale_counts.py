"""Score the benchmark's runs on the local runner, and count the batches that it shuffles; `scale.py` starts this.

python tests/benchmarks/scale_counts.py FOLDER CONFIGURATIONS [--count]
"""

import json
import pickle
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from apache_beam.metrics import monitoring_infos
from apache_beam.portability import common_urns

from rankbeam.pipelines.run.build import build
from rankbeam.pipelines.run.evaluate import new_run
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.pipelines.run.score import ScoreOptions, scoring_experiment
from rankbeam.transforms.clients.storage import batches, spill
from rankbeam.transforms.kernels.statistics.randomisation import Blocks
from rankbeam.transforms.records import columns
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Statistics
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.records.scores.aggregates import RunAggregate
from rankbeam.transforms.records.scores.scored import ScoredConfiguration, ScoredPanel, ScoredPartition, Status

METRICS = ("nDCG@10", "AP", "RR", "R@100", "P@10")
_MERGES = 20
BATCHES = "GroupByBucket"
"""The steps that shuffle batches of rows; others shuffle paths, and states, which runners combine before."""


def main(data: Path, configurations: int, is_counting: bool) -> None:
    """Score, and print the number and the bytes of the batches that are shuffled."""
    with tempfile.TemporaryDirectory() as folder, nullcontext() if is_counting else spill.spilling():
        runs = [Path(folder, f"run{number}.parquet") for number in range(configurations)]
        for run in runs:
            run.symlink_to((data / "run.parquet").absolute())
        options, paths = ScoreOptions(metrics=METRICS), [str(run) for run in runs]
        experiment = scoring_experiment(str(data / "qrels.parquet"), paths, f"{folder}/out", options)
        pipeline = build(experiment, new_run(experiment, None), pipeline_options([]))
        shuffled = set(_shuffled(pipeline.to_runner_api())) if is_counting else set()
        result = pipeline.run()
        result.wait_until_finish()
        sys.stdout.write(json.dumps(_sums(result.monitoring_infos() if is_counting else (), shuffled)))


def _sums(infos: Iterable[Any], shuffled: set[str]) -> tuple[int, float]:
    """The number of elements of these collections, and their bytes, of which Beam samples some."""
    elements: Counter[str] = Counter()
    size: Counter[str] = Counter()
    sampled: Counter[str] = Counter()
    for info in infos:
        name = info.labels.get("PCOLLECTION", "")
        if info.urn == monitoring_infos.ELEMENT_COUNT_URN:
            elements[name] += monitoring_infos.extract_counter_value(info)
        elif info.urn == monitoring_infos.SAMPLED_BYTE_SIZE_URN:
            count, total, *_ = monitoring_infos.extract_distribution(info)
            sampled[name] += count
            size[name] += total
    sums = {name: elements[name] for name in shuffled if elements[name]}
    return sum(sums.values()), sum(count * size[name] / sampled[name] for name, count in sums.items())


def _shuffled(pipeline: object) -> list[str]:
    """The collections of batches that are shuffled."""
    urn = common_urns.primitives.GROUP_BY_KEY.urn
    transforms = pipeline.components.transforms.values()  # type: ignore[attr-defined]
    groups = [transform for transform in transforms if transform.spec.urn == urn and BATCHES in transform.unique_name]
    return [collection for transform in groups for collection in transform.inputs.values()]


def empty_batch_bytes() -> int:
    """Bytes of a batch without rows between two stages."""
    batches.register()
    return len(pickle.dumps(pa.RecordBatch.from_pylist([], schema=columns.RANKINGS).take(pa.array([], pa.int64()))))


def state_of(configurations: int, replicates: int, queries: int = 1100) -> tuple[int, float]:
    """Bytes of the state of one slice, at its largest from 1,024 queries on, and CPU seconds to read and merge it."""
    evaluation = Evaluation(
        configurations=tuple(Configuration(str(i), str(i), 0, "", "{}", None, None) for i in range(configurations)),
        metrics=tuple(map(parse_metric, METRICS)),
        sources=(),
        statistics=Statistics(replicates=replicates),
    )
    rng = np.random.default_rng(0)
    ids = pa.RecordBatch.from_pylist(
        [{"query_id": f"q{n}", "text": None, "attributes": []} for n in range(queries)], schema=columns.QUERIES
    )
    status = np.full(queries, Status.OK, np.int8)
    scored = tuple(
        ScoredConfiguration(i, (ScoredPanel(status, rng.random((queries, len(METRICS)))),))
        for i in range(configurations)
    )
    partition = ScoredPartition(ids, {"all": np.ones(queries, bool)}, scored)
    state = RunAggregate.of(partition, evaluation)
    stored, merged = pickle.dumps(state), state
    began = time.process_time()
    for _ in range(_MERGES):
        merged = merged.merge(pickle.loads(stored))  # noqa: S301  our own
    return len(stored), (time.process_time() - began) / _MERGES


def seconds_of_tests(queries: int = 200_000) -> float:
    """CPU seconds of the paired tests of one pair over one slice, where no difference is clear: the slowest case."""
    rng = np.random.default_rng(0)
    units = rng.integers(-(1 << 32), 1 << 32, (queries, len(METRICS)))
    blocks = Blocks.of(rng.integers(0, 1 << 64, queries, np.uint64), units)
    began = time.process_time()
    for seed in range(_MERGES):
        blocks.test(seed)
    return (time.process_time() - began) / _MERGES


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), "--count" in sys.argv)
