"""Costs of intervals and comparisons in addition to the scores: queries × configurations × metrics × replicates.

    make intervals                                            1M queries, 10 configurations, 12 metrics
    make intervals INTERVALS="--queries 100000 --replicates 0,1000"

Scores are drawn at random, in buckets of 10,000 queries as a pipeline has them, and combined by the code that the
pipeline uses: moments, bootstrap, differences from the baseline, tests, corrections. Each line is a process of its own.
TFMA's default is 20 replicates, each a shuffle of the data; here they are sums in the same pass.
"""

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from machine import described

from rankbeam.transforms.records import columns
from rankbeam.transforms.records.metrics.evaluation import Configuration, Evaluation, Statistics
from rankbeam.transforms.records.metrics.names import parse_metric
from rankbeam.transforms.records.scores.aggregates import RunAggregate
from rankbeam.transforms.records.scores.comparisons import comparisons_table, metrics_table
from rankbeam.transforms.records.scores.estimates import RunEstimates
from rankbeam.transforms.records.scores.scored import ScoredConfiguration, ScoredPanel, ScoredPartition, Status
from rankbeam.transforms.records.slices import slices_of

BUCKET = 10_000
NAMES = ("nDCG@10", "nDCG@100", "P@5", "P@10", "R@10", "R@100", "RR", "AP", "Success@1", "Success@5", "Rprec", "Bpref")
SLICES = 8


def partitions(queries: int, evaluation: Evaluation) -> Iterator[ScoredPartition]:
    """Buckets of random scores; half of the differences from the first configuration are 0."""
    rng = np.random.default_rng(0)
    shape = (BUCKET, len(evaluation.metrics))
    for first in range(0, queries, BUCKET):
        ids = [f"query-{number}" for number in range(first, first + BUCKET)]
        attributes = [[{"name": "kind", "value": str(number % SLICES)}] for number in range(BUCKET)]
        batch = pa.RecordBatch.from_arrays(
            [pa.array(ids), pa.nulls(BUCKET, pa.string()), pa.array(attributes, columns.ATTRIBUTES)],
            schema=columns.QUERIES,
        )
        base = rng.beta(0.5, 0.7, shape)
        scores = [np.where(rng.random(shape) < 0.5, base, rng.beta(0.5, 0.7, shape)) for _ in evaluation.configurations]
        status = np.full(BUCKET, Status.OK, np.int8)
        scored = tuple(
            ScoredConfiguration(i, (ScoredPanel(status, values),)) for i, values in enumerate([base, *scores[1:]])
        )
        yield ScoredPartition(batch, dict(slices_of(batch, evaluation.slices)), scored)


def measure(
    queries: int, configurations: int, replicates: int, sliced: bool, pipe: "multiprocessing.connection.Connection"
) -> None:
    """Combine everything, and say how long it took, without drawing the scores, and how much memory."""
    evaluation = Evaluation(
        configurations=tuple(Configuration(str(i), str(i), 0, "", "{}", None, None) for i in range(configurations)),
        metrics=tuple(map(parse_metric, NAMES)),
        sources=(),
        slices=("kind",) if sliced else (),
        statistics=Statistics(replicates=replicates),
    )
    aggregate, combining = RunAggregate(), 0.0
    for partition in partitions(queries, evaluation):
        began = time.perf_counter()
        aggregate = aggregate.merge(RunAggregate.of(partition, evaluation))
        combining += time.perf_counter() - began
    began = time.perf_counter()
    estimates = RunEstimates.of(aggregate, evaluation)
    rows = metrics_table(estimates, evaluation).num_rows + comparisons_table(estimates, evaluation).num_rows
    concluding = time.perf_counter() - began
    pipe.send((combining, concluding, rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6))


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--configurations", type=int, default=10)
    parser.add_argument("--replicates", default="0,20,1000")
    parser.add_argument("--slices", action="store_true", help=f"also {SLICES} slices")
    options = parser.parse_args()
    lines = [
        *described(),
        f"{options.queries:,} queries × {options.configurations} configurations × {len(NAMES)} metrics",
    ]
    sys.stdout.write("\n".join([*lines, "replicates   combine   conclude    rows   peak memory", ""]))
    context = multiprocessing.get_context("spawn")
    for replicates in map(int, options.replicates.split(",")):
        mine, theirs = context.Pipe()
        arguments = (options.queries, options.configurations, replicates, options.slices, theirs)
        process = context.Process(target=measure, args=arguments)
        process.start()
        combining, concluding, rows, memory = mine.recv()
        process.join()
        sys.stdout.write(
            f"{replicates:>10,}  {combining:>6.1f} s   {concluding:>6.2f} s  {rows:>6,}   {memory:>8.2f} GB\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
