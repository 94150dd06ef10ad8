"""pytrec_eval: trec_eval's C code behind Python dictionaries."""

from collections.abc import Mapping

import pytrec_eval
from values import METRICS, TREC_MEASURES, arguments, write_means, write_values


def parquet_as_dict(path: str, number: str) -> dict[str, dict[str, float]]:
    """Read query → document → number; rows of a query need not follow each other."""
    import pyarrow.parquet as pq

    read: dict[str, dict[str, float]] = {}
    for batch in pq.ParquetFile(path).iter_batches(columns=["query_id", "doc_id", number]):
        query, documents = None, {}
        for query_id, document, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if query_id != query:
                query, documents = query_id, read.setdefault(query_id, {})
            documents[document] = value
    return read


def read_both(qrels: str, run: str, parquet: bool) -> tuple[Mapping, Mapping]:
    """The judgements and the run, as pytrec_eval wants them."""
    if parquet:
        return parquet_as_dict(qrels, "relevance"), parquet_as_dict(run, "score")
    with open(qrels) as judged, open(run) as retrieved:  # noqa: PTH123  as in pytrec_eval's own README
        return pytrec_eval.parse_qrel(judged), pytrec_eval.parse_run(retrieved)


def main() -> None:
    """Score a run."""
    qrels, run, result, parquet = arguments()
    judged, retrieved = read_both(qrels, run, parquet)
    results = pytrec_eval.RelevanceEvaluator(judged, set(TREC_MEASURES)).evaluate(retrieved)
    write_values(result, ((query, [values[name] for name in METRICS.values()]) for query, values in results.items()))
    columns = ([values[name] for values in results.values()] for name in METRICS.values())
    write_means(
        pytrec_eval.compute_aggregated_measure(name, column)
        for name, column in zip(METRICS.values(), columns, strict=True)
    )


if __name__ == "__main__":
    main()
