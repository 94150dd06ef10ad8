"""The benchmark's data: judgements and runs that anybody can make again, byte by byte, from a size and a seed.

A run has `depth` documents for each query (5% of the queries have fewer, 1% are missing), grouped by query, best first.
Scores have six decimals for 70% of the queries, two for 20% and one for 10%, so ties are frequent. A query has up to 50
judged documents (1% of the queries have none), of grades 0 to 3, about 60% of them in the run, most of those near its
top. Blocks of a million rows are drawn independently, each from its own seed, so memory stays bounded.

    python tests/benchmarks/data.py SIZE VARIANT FOLDER      one data set, made again
"""

import math
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from sizes import Size, Variant, parse_size

SEED = 7
BLOCK_ROWS = 1_000_000
CORPUS = 8_841_823
"""The number of passages of MS MARCO; it is prime, so start + i · step meets no document twice in one ranking."""
POOL = 50
SCORES = pacsv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")


@dataclass
class Queries:
    """Random values for each query of a block.

    Attributes:
        number: the number in the query's id.
        length: documents in its ranking.
        in_run: whether the run has it.
        judged: whether it has judgements.
        start: number of the first document.
        step: from one document to the next.
    """

    number: np.ndarray
    length: np.ndarray
    in_run: np.ndarray
    judged: np.ndarray
    start: np.ndarray
    step: np.ndarray

    def documents(self, query: np.ndarray, position: np.ndarray) -> pa.Array:
        """The ids of the documents at positions of queries' rankings; those past the end are not in the run."""
        return _ids("D", (self.start[query] + position * self.step[query]) % CORPUS)


def _ids(letter: str, numbers: np.ndarray) -> pa.Array:
    """Ids such as q12."""
    return pc.binary_join_element_wise(letter, pa.array(numbers).cast(pa.string()), "")


def _draw_queries(rng: np.random.Generator, first: int, count: int, depth: int) -> Queries:
    """Draw a block's queries. The order of the draws is part of the format, here and below."""
    full, shorter = rng.random(count) < 0.95, rng.integers(1, depth + 1, count)
    in_run, judged = rng.random(count) >= 0.01, rng.random(count) >= 0.01
    start, step = rng.integers(0, CORPUS, count), rng.integers(1, CORPUS, count)
    return Queries(np.arange(first, first + count), np.where(full, depth, shorter), in_run, judged, start, step)


def _draw_run(rng: np.random.Generator, queries: Queries, depth: int) -> pa.Table:
    """Draw the scores: from a top between 15 and 30 down in exponential steps, by 10 on average."""
    count = len(queries.number)
    top = rng.uniform(15, 30, count)
    scores = top[:, None] - np.cumsum(rng.exponential(10 / depth, (count, depth)), axis=1)
    decimals = rng.choice([6, 2, 1], count, p=[0.7, 0.2, 0.1])
    for places in (6, 2, 1):
        scores[decimals == places] = np.round(scores[decimals == places], places)
    retrieved = (np.arange(depth) < queries.length[:, None]) & queries.in_run[:, None]
    query, position = np.nonzero(retrieved)
    ids = {"query_id": _ids("q", queries.number[query]), "doc_id": queries.documents(query, position)}
    return pa.table({**ids, "score": scores[retrieved], "rank": position + 1})


def _draw_qrels(rng: np.random.Generator, queries: Queries, depth: int) -> pa.Table:
    """Draw the judged documents; of two judgements of one document, the first counts."""
    shape = (len(queries.number), POOL)
    judgements = np.exp(rng.uniform(0, math.log(POOL + 1), shape[0])).astype(int).clip(1, POOL)
    retrieved = rng.random(shape) < 0.6
    near_the_top = (queries.length[:, None] * rng.random(shape) ** 2.5).astype(int)
    positions = np.where(retrieved, near_the_top, depth + np.arange(POOL))
    qrels, other = (rng.choice(4, shape, p=odds) for odds in ([0.35, 0.35, 0.2, 0.1], [0.5, 0.3, 0.15, 0.05]))
    judged = (np.arange(POOL) < judgements[:, None]) & queries.judged[:, None]
    query, position, grade = np.nonzero(judged)[0], positions[judged], np.where(retrieved, qrels, other)[judged]
    _, first = np.unique(query * (depth + POOL) + position, return_index=True)
    query, position, grade = query[first], position[first], grade[first].astype(np.int32)
    ids = {"query_id": _ids("q", queries.number[query]), "doc_id": queries.documents(query, position)}
    return pa.table({**ids, "relevance": grade})


def blocks(size: Size) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The run, with a column for the rank, and the judgements, block by block."""
    step = max(1, BLOCK_ROWS // size.depth)
    for first in range(0, size.queries, step):
        count = min(step, size.queries - first)
        rng = np.random.default_rng([SEED, first, count, size.depth])
        queries = _draw_queries(rng, first, count, size.depth)
        run = _draw_run(rng, queries, size.depth)
        yield run, _draw_qrels(rng, queries, size.depth)


def _run_lines(run: pa.Table) -> pa.Table:
    """The columns of a TREC run."""
    q0, tag = (pa.repeat(word, run.num_rows) for word in ("Q0", "synth"))
    columns = [run["query_id"], q0, run["doc_id"], run["rank"], run["score"], tag]
    return pa.table(columns, names=["query_id", "q0", "doc_id", "rank", "score", "tag"])


def _qrels_lines(qrels: pa.Table) -> pa.Table:
    """The columns of TREC judgements."""
    return qrels.add_column(1, "iteration", pa.repeat(0, qrels.num_rows))


def _make_grouped(size: Size, folder: Path, _: Path) -> None:
    """Write Parquet, and TREC text unless the size is too large for it."""
    with ExitStack() as stack:
        tables = {}
        texts = {
            kind: stack.enter_context((folder / f"{kind}.trec").open("wb")) for kind in ("run", "qrels") if size.text
        }
        for run, qrels in blocks(size):
            for kind, table in (("run", run.drop_columns("rank")), ("qrels", qrels)):
                if kind not in tables:
                    tables[kind] = stack.enter_context(pq.ParquetWriter(folder / f"{kind}.parquet", table.schema))
                tables[kind].write_table(table)
            if size.text:
                pacsv.write_csv(_run_lines(run), texts["run"], SCORES)
                pacsv.write_csv(_qrels_lines(qrels), texts["qrels"], SCORES)


def _make_shuffled(_: Size, folder: Path, grouped: Path) -> None:
    """Write the rows of both tables in random order, as Parquet."""
    rng = np.random.default_rng(SEED)
    for name in ("run.parquet", "qrels.parquet"):
        table = pq.read_table(grouped / name)
        table = table.take(pa.array(rng.permutation(table.num_rows)))
        pq.write_table(table, folder / name, row_group_size=BLOCK_ROWS)


def _make_mixed(_: Size, folder: Path, grouped: Path) -> None:
    """Write the text of the run with blanks, tabs, double blanks, trailing blanks and CRLF, line by line in turn."""
    with (grouped / "run.trec").open("rb") as plain, (folder / "run.trec").open("wb") as mixed:
        for number, line in enumerate(plain):
            match number % 4:
                case 1:
                    line = line.replace(b" ", b"\t")
                case 2:
                    line = line.replace(b" ", b"  ", 2)
                case 3:
                    line = line[:-1].replace(b" Q0 ", b"\tQ0 ") + b" \r\n"
            mixed.write(line)
    os.link(grouped / "qrels.trec", folder / "qrels.trec")


MAKERS = {Variant.GROUPED: _make_grouped, Variant.SHUFFLED: _make_shuffled, Variant.MIXED: _make_mixed}


def make(size: Size, variant: Variant, folder: Path) -> None:
    """Make a data set beside its place, and rename it: a folder that has its name is complete."""
    place = size.folder(folder, variant)
    beside = place.with_name(f".{place.name}-{os.getpid()}")
    beside.mkdir(parents=True)
    try:
        MAKERS[variant](size, beside, size.folder(folder, Variant.GROUPED))
        beside.rename(place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


if __name__ == "__main__":
    make(parse_size(sys.argv[1]), Variant(sys.argv[2]), Path(sys.argv[3]))
