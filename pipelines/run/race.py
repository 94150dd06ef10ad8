"""The rounds of a race: whole pipelines over one ledger, each with more queries, before the one with all queries.

queries in order ─► first 50 ─► drop ─► first 100 ─► drop ─► … ─► all queries, with each configuration up to its look

A round repeats the calls of earlier rounds, which the ledger answers. After a kill, the next run repeats the rounds
without paying for calls again, and drops the same configurations.
"""

import copy
import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions

from rankbeam.pipelines.experiment.experiment import DatasetSettings, Experiment
from rankbeam.pipelines.run.build import day_of, new_pipeline, pin_of, read_dataset, scores_of
from rankbeam.pipelines.run.folders import RACE, owner_of, work_folder
from rankbeam.transforms.clients.bigquery.names import is_table
from rankbeam.transforms.clients.calls.tally import count
from rankbeam.transforms.clients.formats import sources
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.clients.storage import files, matching
from rankbeam.transforms.clients.storage.batches import Bucketed
from rankbeam.transforms.kernels.arrays import HashArray
from rankbeam.transforms.read import Dataset
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.calls.steps import Usage
from rankbeam.transforms.records.counters import Counter
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.race import Look, first_of, order_of
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
    before = _versions(experiment.dataset)
    with work_folder(experiment.output, RACE, execution.run_id) as folder:
        order, recorded = _full_order(pinned, options, folder), frozenset[str]()
        for look in race.schedule(len(order)):
            last = int(order[look.queries - 1])
            active, spent = _run_round(pinned, execution, options, look, last, folder)
            pinned, dropped = _with_dropped(pinned, active, look, last)
            pinned = replace(pinned, calls=replace(pinned.calls, spent=spent))
            recorded = _forget_stored(pinned, execution, recorded)
            _logger.info("race: %d of %d queries: %d dropped, %d left", look.queries, len(order), dropped, len(active))
            if len(active) < 2:
                break
    if changed := sorted(path for path, state in _versions(experiment.dataset).items() if state != before[path]):
        raise InputError("has changed during the race; run again, and the ledger's answers are used", path=changed[0])
    evaluation = replace(experiment.evaluation, configurations=pinned.evaluation.configurations)
    return replace(experiment, evaluation=evaluation, calls=replace(experiment.calls, spent=pinned.calls.spent))


def _forget_stored(experiment: Experiment, execution: Run, recorded: frozenset[str]) -> frozenset[str]:
    """Take the answers that the ledger now has out of the tally: the next round reads them again.

    Returns the names of all records of calls; those in `recorded` are out already.
    """
    uses = Ledger(experiment.ledger, owner_of(experiment.calls, execution)).uses() if experiment.makes_calls else []
    for use in uses:
        for counter in (Counter.LEDGER_HITS, Counter.CALLS_PLANNED) if use.name not in recorded else ():
            count(counter, -use.hits - use.answered, use.pool)
    return frozenset(use.name for use in uses)


def _versions(dataset: DatasetSettings) -> dict[str, tuple[matching.Version, ...]]:
    """The versions of the files by which configurations are dropped; tables have none."""
    references = None if dataset.references is None else dataset.references.path
    paths = (dataset.queries, dataset.qrels, dataset.evidence, dataset.corpus, references)
    return {path: sources.version(path) for path in paths if path is not None and not is_table(path)}


def _cost_by_stage(used: Iterable[Usage], pools: Mapping[str, Quota]) -> dict[str, float]:
    """Cost of the rounds so far, by stage."""
    costs: defaultdict[str, float] = defaultdict(float)
    for usage in used:
        costs[usage.stage] += pools[usage.pool].cost(usage.calls, usage.tokens) or 0.0
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
        | "Numbers" >> beam.Map(lambda parts: np.concatenate([np.empty(0, np.uint64), *parts]).tolist())
        | "WritePlaces" >> beam.Map(_write, path)
    )
    pipeline.run().wait_until_finish()
    order: HashArray = np.sort(np.array(_read(path), np.uint64))
    return order


def _run_round(
    experiment: Experiment, execution: Run, options: PipelineOptions, look: Look, last: int, folder: str
) -> tuple[frozenset[int], dict[str, float]]:
    """Score the first queries; return the remaining configurations, and the cost of the rounds so far, by stage."""
    pipeline = new_pipeline(copy.deepcopy(options))
    dataset = read_dataset(pipeline, experiment)
    first = dataset.judged | "First" >> beam.FlatMap(first_queries, last).with_output_types(Bucketed)
    scores = scores_of(pipeline, experiment, execution, Dataset(first, dataset.summary))
    left_path, cost_path = (files.join(folder, f"{look.queries}-{name}") for name in ("left", "cost"))
    _ = (
        scores.aggregates
        | "OfAll" >> beam.FlatMap(lambda element: [element[1]] if element[0] == (ALL, 0) else [])
        | "Left" >> beam.Map(left_after, experiment.evaluation, look)
        | "Positions" >> beam.Map(sorted)
        | "WriteLeft" >> beam.Map(_write, left_path)
    )
    if scores.usage:
        all_usage = scores.usage | "EveryUsage" >> beam.Flatten() | "AllUsage" >> beam.combiners.ToList()
        costs = all_usage | "CostByStage" >> beam.Map(_cost_by_stage, experiment.calls.pools)
        _ = costs | "WriteCosts" >> beam.Map(_write, cost_path)
    pipeline.run().wait_until_finish()
    return frozenset(_read(left_path)), _read(cost_path) if scores.usage else {}


def first_queries(element: Bucketed, last: int) -> Iterator[Bucketed]:
    """The queries of a bucket up to a position in the race's order."""
    bucket, judged = element
    rows = first_of(judged, last)
    if rows.num_rows:
        yield bucket, rows


def _write(value: object, path: str) -> None:
    files.write(path, json.dumps(value).encode())


def _read(path: str) -> Any:
    return json.loads(files.read_all(path))  # not a pickle: others may be able to write to the output folder
