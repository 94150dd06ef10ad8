"""ir_measures: its readers for TREC text, and DataFrames for Parquet."""

from collections.abc import Iterable

import ir_measures
from values import METRICS, arguments, write_means, write_values


def read_both(qrels: str, run: str, parquet: bool) -> tuple[Iterable, Iterable]:
    """The judgements and the run, as ir_measures wants them."""
    if parquet:
        import pandas as pd

        return pd.read_parquet(qrels), pd.read_parquet(run)
    return ir_measures.read_trec_qrels(qrels), ir_measures.read_trec_run(run)


def main() -> None:
    """Score a run."""
    qrels, run, result, parquet = arguments()
    measures = [ir_measures.parse_measure(name) for name in METRICS]
    results = ir_measures.calc(measures, *read_both(qrels, run, parquet))
    place = {measure: at for at, measure in enumerate(measures)}
    values: dict[str, list[float]] = {}
    for one in results.per_query:
        values.setdefault(one.query_id, [float("nan")] * len(measures))[place[one.measure]] = one.value
    write_values(result, values.items())
    write_means(results.aggregated[measure] for measure in measures)


if __name__ == "__main__":
    main()
