"""A floor: everything in one SQL statement."""

from pathlib import Path

import duckdb
from values import CUTOFFS, METRICS, arguments, write_means

PER_CUTOFF = """
    coalesce(sum(relevance / log2(rank + 1)) FILTER (rank <= {k}), 0) AS dcg_{k},
    count(*) FILTER (rank <= {k}) AS found_{k}"""

SCORE = """
CREATE TEMP TABLE scored AS
WITH
judged AS (FROM read_parquet($qrels)),
relevant AS (
    SELECT *, row_number() OVER (PARTITION BY query_id ORDER BY relevance DESC) AS rank FROM judged WHERE relevance > 0
),
ideal AS (SELECT query_id, count(*) AS relevant, {per_cutoff} FROM relevant GROUP BY query_id),
ranked AS (
    SELECT query_id, doc_id, row_number() OVER (PARTITION BY query_id ORDER BY score DESC, doc_id DESC) AS rank
    FROM read_parquet($run)
),
hits AS (
    SELECT query_id, ranked.rank, relevance, row_number() OVER (PARTITION BY query_id ORDER BY ranked.rank) AS nth
    FROM ranked JOIN relevant USING (query_id, doc_id)
),
found AS (SELECT query_id, min(rank) AS first, sum(nth / rank) AS precisions, {per_cutoff} FROM hits GROUP BY query_id)
SELECT query_id, {columns}
FROM (SELECT DISTINCT query_id FROM judged)
LEFT JOIN ideal USING (query_id) LEFT JOIN found USING (query_id)
"""


def columns() -> str:
    """The twelve metrics; what has no relevant document, or found none, is 0."""
    cut = [
        ("nDCG", "found.dcg_{k} / ideal.dcg_{k}"),
        ("P", "found.found_{k} / {k}"),
        ("R", "found.found_{k} / relevant"),
    ]
    formulas = {f"{name}@{k}": formula.format(k=k) for name, formula in cut for k in CUTOFFS}
    formulas |= {"RR": "1 / first", "AP": "precisions / relevant", "Success@10": "(first <= 10)::int"}
    return ", ".join(f'coalesce({formulas[name]}, 0)::double AS "{name}"' for name in METRICS)


def main() -> None:
    """Score a run."""
    qrels, run, result, _ = arguments()
    connection = duckdb.connect(config={"temp_directory": str(Path(result).parent), "preserve_insertion_order": False})
    per_cutoff = ",".join(PER_CUTOFF.format(k=k) for k in CUTOFFS)
    statement = SCORE.format(per_cutoff=per_cutoff, columns=columns())
    connection.execute(statement, {"qrels": qrels, "run": run})
    connection.execute(f"COPY scored TO '{result}' (FORMAT csv, DELIMITER '\t', HEADER)")
    means = ", ".join(f'avg("{name}")' for name in METRICS)
    write_means(connection.execute(f"SELECT {means} FROM scored").fetchone())


if __name__ == "__main__":
    main()
