"""ranx: Numba over typed dictionaries; it compiles in every process."""

from typing import Any

from ranx import Qrels, Run, evaluate
from values import CUTOFFS, arguments, write_means, write_values

NAMES = [f"{name}@{cutoff}" for name in ("ndcg", "precision", "recall") for cutoff in CUTOFFS]
NAMES += ["mrr", "map", "hit_rate@10"]


def from_parquet(kind: type, path: str, number: str, dtype: str) -> Any:
    """Read Parquet ourselves: ranx's reader refuses pandas 3's strings and grades of 32 bits."""
    import pandas as pd

    frame = pd.read_parquet(path).astype({"query_id": object, "doc_id": object, number: dtype})
    return kind.from_df(frame, q_id_col="query_id", doc_id_col="doc_id", score_col=number)


def main() -> None:
    """Score a run."""
    qrels, run, result, parquet = arguments()
    if parquet:
        judged = from_parquet(Qrels, qrels, "relevance", "int64")
        retrieved = from_parquet(Run, run, "score", "float64")
    else:
        judged, retrieved = Qrels.from_file(qrels, kind="trec"), Run.from_file(run, kind="trec")
    means = evaluate(judged, retrieved, NAMES, make_comparable=True)
    columns = [retrieved.scores[name] for name in NAMES]
    write_values(result, ((query, [float(column[query]) for column in columns]) for query in columns[0]))
    write_means(float(means[name]) for name in NAMES)


if __name__ == "__main__":
    main()
