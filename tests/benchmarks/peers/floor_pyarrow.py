"""A floor: pyarrow reads and looks up, NumPy sorts and counts."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from values import CUTOFFS, HEADER, METRICS, arguments, write_means


@dataclass
class Relevant:
    """Relevant documents, or those of them that were found: the query's number, and per document rank and grade."""

    query: np.ndarray
    rank: np.ndarray
    grade: np.ndarray


def encoded(path: str, number: str) -> tuple[pa.DictionaryArray, pa.Array, np.ndarray]:
    """Query ids as codes, document ids, and the number of every row."""
    table = pq.read_table(path, read_dictionary=["query_id"]).unify_dictionaries()
    return table["query_id"].combine_chunks(), table["doc_id"].combine_chunks(), table[number].to_numpy()


def position(group: np.ndarray, groups: int) -> np.ndarray:
    """The place of every row in its group, from 1; groups stand together, in ascending order."""
    ends = np.cumsum(np.bincount(group, minlength=groups))
    return np.arange(1, len(group) + 1) - np.concatenate([[0], ends[:-1]])[group]


def best_first(query: np.ndarray, score: np.ndarray, document: pa.Array) -> np.ndarray:
    """The order by query, score and document id, the last two descending."""
    fine = (np.diff(query) > 0) | ((np.diff(query) == 0) & (np.diff(score) <= 0))
    order = np.arange(len(query)) if fine.all() else np.lexsort((-score, query))
    same = (np.diff(query[order]) == 0) & (np.diff(score[order]) == 0)
    tied = np.flatnonzero(np.concatenate([[False], same]) | np.concatenate([same, [False]]))
    group = np.cumsum(~np.concatenate([[False], same]))[tied]
    ties = pa.table({"group": group, "document": document.take(pa.array(order[tied]))})
    order[tied] = order[tied][pc.sort_indices(ties, [("group", "ascending"), ("document", "descending")]).to_numpy()]
    return order


def grades(keys: np.ndarray, judged: np.ndarray, grade: np.ndarray) -> np.ndarray:
    """The grade of every key, 0 for keys without one."""
    order = np.argsort(judged)
    place = np.searchsorted(judged[order], keys).clip(max=len(judged) - 1)
    return np.where(judged[order][place] == keys, grade[order][place], 0)


def ranks(query: np.ndarray, score: np.ndarray, document: pa.Array, queries: int) -> np.ndarray:
    """The rank of every row in its query, from 1."""
    order, ranks = best_first(query, score, document), np.empty(len(query), np.int64)
    ranks[order] = position(query[order], queries)
    return ranks


def relevant(
    run: str, queries: pa.Array, judged_query: np.ndarray, judged_doc: pa.Array, grade: np.ndarray
) -> Relevant:
    """The relevant documents of a run."""
    ids, documents, score = encoded(run, "score")
    code, pool = ids.indices.to_numpy(), judged_doc.dictionary_encode()
    query = pc.fill_null(pc.index_in(ids.dictionary, queries), -1).to_numpy().astype(np.int64)[code]
    pooled = pc.fill_null(pc.index_in(documents, pool.dictionary), -1).to_numpy()
    rows, width = np.flatnonzero((pooled >= 0) & (query >= 0)), len(pool.dictionary)
    hit = grades(query[rows] * width + pooled[rows], judged_query * width + pool.indices.to_numpy(), grade)
    rows, hit = rows[hit > 0], hit[hit > 0]
    rank = ranks(code, score, documents, len(ids.dictionary))[rows]
    best = np.lexsort((rank, query[rows]))
    return Relevant(query[rows][best], rank[best], hit[best])


def ideal(query: np.ndarray, grade: np.ndarray, queries: int) -> Relevant:
    """The relevant documents of the pool, highest grade first."""
    relevant = np.flatnonzero(grade > 0)
    order = relevant[np.lexsort((-grade[relevant], query[relevant]))]
    return Relevant(query[order], position(query[order], queries), grade[order])


def total(among: Relevant, value: np.ndarray, queries: int, cutoff: int | None = None) -> np.ndarray:
    """Sum values per query, down to a cutoff."""
    within = slice(None) if cutoff is None else among.rank <= cutoff
    return np.bincount(among.query[within], value[within], queries)


def ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """A fraction, 0 where there is nothing below."""
    return np.divide(above, below, out=np.zeros(len(below)), where=below > 0)


def metrics(hits: Relevant, pool: Relevant, queries: int) -> list[np.ndarray]:
    """The twelve metrics of every query."""
    gains = [(among, among.grade / np.log2(among.rank + 1)) for among in (hits, pool)]
    ones, nth = np.ones(len(hits.query)), position(hits.query, queries)
    relevant, first = np.bincount(pool.query, minlength=queries), np.where(nth == 1, 1.0, 0.0)
    ndcg = [ratio(*(total(among, gain, queries, k) for among, gain in gains)) for k in CUTOFFS]
    counts = [total(hits, ones, queries, k) for k in CUTOFFS]
    cut = ndcg + [count / k for count, k in zip(counts, CUTOFFS, strict=True)]
    cut += [ratio(count, relevant) for count in counts]
    ap = ratio(total(hits, nth / hits.rank, queries), relevant)
    return [*cut, total(hits, first / hits.rank, queries), ap, total(hits, first, queries, 10)]


def main() -> None:
    """Score a run."""
    qrels, run, result, _ = arguments()
    ids, documents, grade = encoded(qrels, "relevance")
    queries, query = ids.dictionary, ids.indices.to_numpy().astype(np.int64)
    hits = relevant(run, queries, query, documents, grade)
    values = metrics(hits, ideal(query, grade, len(queries)), len(queries))
    table = pa.table([queries, *values], names=list(HEADER))
    pacsv.write_csv(table, result, pacsv.WriteOptions(delimiter="\t", quoting_style="none", quoting_header="none"))
    write_means(float(np.mean(value)) for value, _ in zip(values, METRICS, strict=True))


if __name__ == "__main__":
    main()
