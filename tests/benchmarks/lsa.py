"""Compare the `lsa` retriever with an exact decomposition, and with itself under other seeds.

    python tests/benchmarks/lsa.py COLLECTION --dimensions 50,100,200 --seeds 10

COLLECTION is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv. For each dimension, it prints the share of
the first ten documents that the exact decomposition ranks there, too, nDCG@10 of both, and its standard deviation and
range over seeds of the random projection: differences of a sweep below the range are noise.
"""

import argparse
import csv
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from rankbeam.transforms.clients.retrievers import lsa
from rankbeam.transforms.kernels.search import svd
from rankbeam.transforms.kernels.search.nearest import unit_length
from rankbeam.transforms.kernels.search.weights import TfIdfScorer, sublinear_tf
from rankbeam.transforms.records.queries import Documents, Query

TOP = 10
Rankings = Mapping[str, tuple[str, ...]]


def main() -> None:
    """Compare the decompositions of one collection."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--dimensions", default="50,100,200")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    rows = [json.loads(line) for line in (options.collection / "queries.jsonl").read_text().splitlines()]
    qrels: defaultdict[str, dict[str, int]] = defaultdict(dict)
    with (options.collection / "qrels" / "test.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            qrels[row["query-id"]][row["corpus-id"]] = int(row["score"])
    queries = [Query(str(row["_id"]), row["text"]) for row in rows if str(row["_id"]) in qrels]
    indexed = lsa.Lsa().index(Documents(str(options.collection / "corpus.jsonl")))
    scorer = TfIdfScorer.of(indexed.postings)
    left, values, right = np.linalg.svd(_matrix(scorer), full_matrices=False)
    for dimension in map(int, options.dimensions.split(",")):
        exact = lsa.LsaIndex(
            indexed,
            scorer,
            unit_length(left[:, :dimension] * values[:dimension], 1e-5),
            right[:dimension].T.astype(np.float32),
        )
        reference = ranked(exact, queries)
        means, overlaps = [], []
        for rankings in seeded(indexed, scorer, dimension, options.seeds, queries):
            means.append(ndcg(rankings, qrels))
            overlaps.append(np.mean([len({*rankings[name]} & {*reference[name]}) / TOP for name in reference]))
        spread = f"sd {np.std(means, ddof=1):.4f}, range {np.ptp(means):.4f}"
        exactly = ndcg(reference, qrels)
        approximate = f"nDCG@10 {np.mean(means):.4f} ({spread} over {options.seeds} seeds)"
        sys.stdout.write(
            f"{dimension} dimensions: overlap {np.mean(overlaps):.3f}, {approximate}; exactly {exactly:.4f}\n"
        )
        sys.stdout.flush()


def _matrix(scorer: TfIdfScorer) -> np.ndarray:
    """float64[u, t]: the weights that `lsa` decomposes."""
    postings = scorer.postings
    matrix = np.zeros((len(postings.length), len(postings.offsets) - 1))
    for rows, term in postings.blocks(1 << 20):
        unit = postings.unit[rows]
        matrix[unit, term] = sublinear_tf(postings.count[rows]) * scorer.idf[term] / scorer.norm[unit]
    return matrix


def seeded(
    indexed: lsa.IndexedUnits, scorer: TfIdfScorer, dimension: int, seeds: int, queries: Sequence[Query]
) -> Iterator[Rankings]:
    """The rankings with each seed of the projection."""
    for seed in range(seeds):
        svd.SEED = seed
        with tempfile.TemporaryDirectory(prefix="rankbeam-lsa-") as folder:
            lsa._decompose(scorer, dimension, Path(folder))
            vectors, terms = (np.load(Path(folder) / f"{name}.npy") for name in ("vectors", "terms"))
        yield ranked(lsa.LsaIndex(indexed, scorer, vectors, terms), queries)


def ranked(index: lsa.LsaIndex, queries: Sequence[Query]) -> Rankings:
    """The first documents of each query."""
    rankings = index.retrieve_all(queries, TOP)
    return {query.query_id: ranking.doc_ids for query, ranking in zip(queries, rankings, strict=True)}


def ndcg(rankings: Rankings, qrels: Mapping[str, Mapping[str, int]]) -> float:
    """The mean nDCG@10."""
    discounts = 1 / np.log2(np.arange(2, TOP + 2))
    values = []
    for name, doc_ids in rankings.items():
        gains = np.maximum([qrels[name].get(doc_id, 0) for doc_id in doc_ids], 0)
        ideal = np.sort(np.maximum(list(qrels[name].values()), 0))[::-1][:TOP]
        best = ideal @ discounts[: len(ideal)]
        values.append(gains @ discounts[: len(gains)] / best if best else 0.0)
    return float(np.mean(values))


if __name__ == "__main__":
    main()
