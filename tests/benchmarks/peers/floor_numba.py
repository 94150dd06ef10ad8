"""A floor: compiled loops over the columns.

Every query has a small hash table of its relevant documents; a hit's rank is one more than the number of
documents that are better. The warm-up compiles, later runs find what it compiled.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numba import njit, prange
from values import HEADER, arguments, write_means

FREE = -1


@njit(cache=True)
def slot_of(data, start, stop, size):
    """Slot of an id in a table whose size is a power of two (FNV-1a)."""
    slot = np.uint64(14695981039346656037)
    for at in range(start, stop):
        slot = (slot ^ np.uint64(data[at])) * np.uint64(1099511628211)
    return np.int64((slot ^ (slot >> np.uint64(29))) & np.uint64(size - 1))


@njit(cache=True)
def compared(data, start, stop, other, other_start, other_stop):
    """Below 0, 0 or above 0, as an id is before, equal to or after another, byte by byte."""
    for at in range(min(stop - start, other_stop - other_start)):
        if data[start + at] != other[other_start + at]:
            return np.int64(data[start + at]) - np.int64(other[other_start + at])
    return np.int64((stop - start) - (other_stop - other_start))


@njit(cache=True)
def table_of(rows, offsets, data):
    """An open hash table, at most half full, of rows of the pool."""
    size = 2
    while size < 2 * len(rows):
        size *= 2
    table = np.full(size, FREE, np.int64)
    for row in rows:
        slot = slot_of(data, offsets[row], offsets[row + 1], size)
        while table[slot] != FREE:
            slot = (slot + 1) & (size - 1)
        table[slot] = row
    return table


@njit(cache=True)
def by_query(query, queries):
    """The rows of each query: where they start, and their order; rows of no judged query are left out."""
    starts = np.zeros(queries + 1, np.int64)
    for number in query:
        if number >= 0:
            starts[number + 1] += 1
    starts = np.cumsum(starts)
    free, order = starts.copy(), np.empty(starts[-1], np.int64)
    for row in range(len(query)):
        if query[row] >= 0:
            order[free[query[row]]] = row
            free[query[row]] += 1
    return starts, order


@njit(cache=True)
def look_up(table, pool_offsets, pool_data, data, start, stop):
    """The row of the pool that has a document, or FREE."""
    slot = slot_of(data, start, stop, len(table))
    while table[slot] != FREE:
        row = table[slot]
        if compared(data, start, stop, pool_data, pool_offsets[row], pool_offsets[row + 1]) == 0:
            return row
        slot = (slot + 1) & (len(table) - 1)
    return FREE


@njit(cache=True)
def rank_of(row, rows, score, offsets, data):
    """One more than the number of rows with a higher score, or the same and a higher document id."""
    rank = 1
    for other in rows:
        if score[other] > score[row]:
            rank += 1
        elif score[other] == score[row] and other != row:
            mine = (data, offsets[row], offsets[row + 1])
            rank += compared(data, offsets[other], offsets[other + 1], *mine) > 0
    return rank


@njit(cache=True)
def metrics_of(ranks, grades, pool, out):
    """The twelve metrics of one query, from its hits by rank and its relevant grades, highest first."""
    cutoffs = (5, 10, 100)
    for at in range(3):
        ideal, gain, hits = 0.0, 0.0, 0
        for place in range(min(cutoffs[at], len(pool))):
            ideal += pool[place] / np.log2(place + 2)
        for hit in range(len(ranks)):
            if ranks[hit] <= cutoffs[at]:
                gain += grades[hit] / np.log2(ranks[hit] + 1)
                hits += 1
        out[at], out[3 + at], out[6 + at] = gain / ideal, hits / cutoffs[at], hits / len(pool)
    for hit in range(len(ranks)):
        out[10] += (hit + 1) / ranks[hit] / len(pool)
    if len(ranks) > 0:
        out[9], out[11] = 1 / ranks[0], ranks[0] <= 10


@njit(cache=True)
def score_query(rows, score, offsets, data, pool, pool_grade, pool_offsets, pool_data, out):
    """The metrics of one query, from its rows of the run and the rows of the pool that are relevant."""
    table = table_of(pool, pool_offsets, pool_data)
    ranks, grades, hits = np.empty(len(pool), np.int64), np.empty(len(pool), np.int64), 0
    for row in rows:
        judged = look_up(table, pool_offsets, pool_data, data, offsets[row], offsets[row + 1])
        if judged != FREE:
            ranks[hits], grades[hits] = rank_of(row, rows, score, offsets, data), pool_grade[judged]
            hits += 1
    best = np.argsort(ranks[:hits])
    metrics_of(ranks[best], grades[best], -np.sort(-pool_grade[pool]), out)


@njit(cache=True, parallel=True)
def scored(queries, query, score, offsets, data, pool_query, pool_grade, pool_offsets, pool_data):
    """Values of every judged query."""
    out = np.zeros((queries, 12))
    starts, order = by_query(query, queries)
    pool_starts, pool_order = by_query(pool_query, queries)
    for number in prange(queries):
        judged = pool_order[pool_starts[number] : pool_starts[number + 1]]
        pool = judged[pool_grade[judged] > 0]
        if len(pool) > 0:
            rows = order[starts[number] : starts[number + 1]]
            score_query(rows, score, offsets, data, pool, pool_grade, pool_offsets, pool_data, out[number])
    return out


def columns(path: str, number: str) -> tuple[pa.DictionaryArray, np.ndarray, np.ndarray, np.ndarray]:
    """Query ids as codes, the number of every row, and the offsets and bytes of document ids."""
    table = pq.read_table(path, columns=["query_id", "doc_id", number], read_dictionary=["query_id"])
    table = table.unify_dictionaries().combine_chunks()
    query, document, value = (column.chunk(0) for column in table.columns)
    _, offsets, data = document.buffers()
    places = np.frombuffer(offsets, np.int32)[document.offset : document.offset + len(document) + 1]
    return query, value.to_numpy(), places, np.frombuffer(data, np.uint8)


def main() -> None:
    """Score a run."""
    qrels, run, result, _ = arguments()
    pool_ids, grade, *pool_documents = columns(qrels, "relevance")
    ids, score, *documents = columns(run, "score")
    queries = pool_ids.dictionary
    known = pc.fill_null(pc.index_in(ids.dictionary, queries), FREE).to_numpy()
    query, pool_query = known[ids.indices.to_numpy()], pool_ids.indices.to_numpy()
    values = scored(len(queries), query, score, *documents, pool_query, grade, *pool_documents)
    table = pa.table([queries, *values.T], names=list(HEADER))
    pacsv.write_csv(table, result, pacsv.WriteOptions(delimiter="\t", quoting_style="none", quoting_header="none"))
    write_means(values.mean(axis=0).tolist())


if __name__ == "__main__":
    main()
