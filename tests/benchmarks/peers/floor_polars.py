"""A floor: one lazy polars query."""

import polars as pl
from values import CUTOFFS, HEADER, METRICS, arguments, write_means

RANK, GRADE = pl.col("rank"), pl.col("relevance")


def per_cutoff() -> list[pl.Expr]:
    """Discounted gain and number of relevant documents above each cutoff."""
    gain = GRADE / (RANK + 1).log(2)
    above = {k: RANK.le(k) for k in CUTOFFS}
    gains = [gain.filter(rows).sum().alias(f"dcg_{k}") for k, rows in above.items()]
    return gains + [rows.sum().alias(f"found_{k}") for k, rows in above.items()]


def ranked(run: pl.LazyFrame) -> pl.LazyFrame:
    """The run with a rank in every row: by score, then by document id, both descending."""
    best_first = pl.col("doc_id").sort_by("score", "doc_id", descending=True)
    lists = run.group_by("query_id").agg(best_first, rank=1 + pl.int_range(pl.len()))
    return lists.explode("doc_id", "rank")


def metrics() -> list[pl.Expr]:
    """The twelve metrics; what has no relevant document, or found none, is 0."""
    cut = [pl.col(f"dcg_{k}") / pl.col(f"dcg_{k}_ideal") for k in CUTOFFS]
    cut += [pl.col(f"found_{k}") / k for k in CUTOFFS]
    cut += [pl.col(f"found_{k}") / pl.col("relevant") for k in CUTOFFS]
    whole = [1 / pl.col("first"), pl.col("precisions") / pl.col("relevant"), pl.col("first") <= 10]
    expressions = zip(METRICS, [*cut, *whole], strict=True)
    return [expression.cast(pl.Float64).fill_null(0.0).alias(name) for name, expression in expressions]


def scored(judged: pl.LazyFrame, run: pl.LazyFrame) -> pl.LazyFrame:
    """A row for each judged query."""
    relevant = judged.filter(GRADE > 0)
    ordered = relevant.sort("query_id", "relevance", descending=[False, True])
    ideal = ordered.with_columns(rank=1 + pl.int_range(pl.len()).over("query_id"))
    ideal = ideal.group_by("query_id").agg(*per_cutoff(), relevant=pl.len())
    hits = ranked(run).join(relevant, on=["query_id", "doc_id"])
    nth = RANK.rank("ordinal")
    per_query = hits.group_by("query_id").agg(*per_cutoff(), first=RANK.min(), precisions=(nth / RANK).sum())
    queries = judged.select("query_id").unique()
    joined = queries.join(per_query, on="query_id", how="left").join(ideal, on="query_id", how="left", suffix="_ideal")
    return joined.with_columns(metrics()).select(HEADER)


def main() -> None:
    """Score a run."""
    qrels, run, result, _ = arguments()
    values = scored(pl.scan_parquet(qrels), pl.scan_parquet(run)).collect(engine="streaming")
    values.write_csv(result, separator="\t")
    write_means(values.select(*METRICS).mean().row(0))


if __name__ == "__main__":
    main()
