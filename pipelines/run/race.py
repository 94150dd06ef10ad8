"""The rounds of a race: whole pipelines over one ledger, each with more queries, before the one with all queries.

queries in order ─► first 50 ─► drop ─► first 100 ─► drop ─► … ─► all queries, with each configuration up to its look

A round repeats the calls of earlier rounds, which the ledger answers. After a kill, the next run repeats the rounds
without paying for calls again, and drops the same configurations.
"""

import base64
import copy
import logging
import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.options.pipeline_options import PipelineOptions

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.run.build import day_of, new_pipeline, pin_of, read_dataset, scores_of
from rankbeam.pipelines.run.folders import RACE, work_folder
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.storage.batches import Bucketed
from rankbeam.transforms.kernels.arrays import HashArray
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.records.calls.steps import Usage
from rankbeam.transforms.records.race import Look, order_of
from rankbeam.transforms.records.run import Run
from rankbeam.transforms.records.scores.racing import left_after
from rankbeam.transforms.records.slices import ALL

_logger = logging.getLogger(__name__)


def run_race(experiment: Experiment, execution: Run, options: PipelineOptions) -> Experiment:
    """Run the rounds of a race; return the experiment with the dropped configurations marked.

    The last pipeline's usage includes these rounds, because the ledger's records of a run contain all its calls.
    """
    race = experiment.evaluation.race
    if race is None:
        return experiment
    pinned = experiment.pinned(pin_of(execution), day_of(execution))
    with work_folder(experiment.output, RACE, execution.run_id) as folder:
        order = _full_order(pinned, options, folder)
        for look in race.schedule(len(order)):
            last = int(order[look.queries - 1])
            active, usage = _run_round(pinned, execution, options, look, last, folder)
            pinned, dropped = _with_dropped(pinned, active, look, last)
            pinned = replace(pinned, calls=replace(pinned.calls, spent=_cost_by_stage(pinned, usage)))
            _logger.info("race: %d of %d queries: %d dropped, %d left", look.queries, len(order), dropped, len(active))
            if len(active) < 2:
                break
    evaluation = replace(experiment.evaluation, configurations=pinned.evaluation.configurations)
    return replace(experiment, evaluation=evaluation, calls=replace(experiment.calls, spent=pinned.calls.spent))


def _cost_by_stage(experiment: Experiment, used: Iterable[Usage]) -> dict[str, float]:
    """Cost of the rounds so far, by stage."""
    costs: defaultdict[str, float] = defaultdict(float)
    for usage in used:
        costs[usage.stage] += experiment.calls.pools[usage.pool].cost(usage.calls, usage.tokens) or 0.0
    return dict(costs)


def _with_dropped(experiment: Experiment, active: frozenset[int], look: Look, last: int) -> tuple[Experiment, int]:
    """The experiment with newly dropped configurations marked, and their number."""
    evaluation = experiment.evaluation
    dropped = [
        i
        for i, configuration in enumerate(evaluation.configurations)
        if configuration.dropped_at is None and i not in active
    ]
    return replace(experiment, evaluation=evaluation.with_dropped(dropped, look.queries, last)), len(dropped)


def _full_order(experiment: Experiment, options: PipelineOptions, folder: str) -> HashArray:
    """The positions of all queries in the race's order, ascending."""
    pipeline = new_pipeline(copy.deepcopy(options))
    path = files.join(folder, "order")
    _ = (
        read_dataset(pipeline, experiment).judged
        | "Places" >> beam.Map(lambda element: order_of(element[1]["query_id"]))
        | "AllPlaces" >> beam.combiners.ToList()
        | "WritePlaces" >> beam.Map(_write, path)
    )
    pipeline.run().wait_until_finish()
    order: HashArray = np.sort(np.concatenate([np.empty(0, np.uint64), *_read(path)]))
    return order


def _run_round(
    experiment: Experiment, execution: Run, options: PipelineOptions, look: Look, last: int, folder: str
) -> tuple[frozenset[int], list[Usage]]:
    """Score the first queries; return the remaining configurations, and the usage of quota pools."""
    pipeline = new_pipeline(copy.deepcopy(options))
    dataset = read_dataset(pipeline, experiment)
    first = dataset.judged | "First" >> beam.FlatMap(first_of, last).with_output_types(Bucketed)
    scores = scores_of(pipeline, experiment, execution, Dataset(first, dataset.summary))
    left_path, usage_path = (files.join(folder, f"{look.queries}-{name}") for name in ("left", "usage"))
    _ = (
        scores.aggregates
        | "OfAll" >> beam.FlatMap(lambda element: [element[1]] if element[0] == (ALL, 0) else [])
        | "Left" >> beam.Map(left_after, experiment.evaluation, look)
        | "WriteLeft" >> beam.Map(_write, left_path)
    )
    if scores.usage:
        all_usage = scores.usage | "EveryUsage" >> beam.Flatten() | "AllUsage" >> beam.combiners.ToList()
        _ = all_usage | "WriteUsage" >> beam.Map(_write, usage_path)
    pipeline.run().wait_until_finish()
    return _read(left_path), _read(usage_path) if scores.usage else []


def first_of(element: Bucketed, last: int) -> Iterator[Bucketed]:
    """The queries of a bucket up to a position in the race's order."""
    bucket, judged = element
    rows = judged.filter(pa.array(order_of(judged["query_id"]) <= np.uint64(last)))
    if rows.num_rows:
        yield bucket, rows


def _write(value: object, path: str) -> None:
    files.write(path, base64.b64encode(pickle.dumps(value)))


def _read(path: str) -> Any:
    return pickle.loads(base64.b64decode(files.read_all(path)))  # noqa: S301  a pipeline of this process wrote it
