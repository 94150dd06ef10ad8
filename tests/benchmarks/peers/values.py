"""Values of every peer, in one form: a line a query, tab-separated, under a header.

The means go to standard output. Only the standard library is imported here: nobody pays for what another peer needs.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

METRICS = {
    "nDCG@5": "ndcg_cut_5",
    "nDCG@10": "ndcg_cut_10",
    "nDCG@100": "ndcg_cut_100",
    "P@5": "P_5",
    "P@10": "P_10",
    "P@100": "P_100",
    "R@5": "recall_5",
    "R@10": "recall_10",
    "R@100": "recall_100",
    "RR": "recip_rank",
    "AP": "map",
    "Success@10": "success_10",
}
"""The twelve metrics in rankbeam's words, in the order of every file, and in trec_eval's."""

TREC_MEASURES = ("ndcg_cut.5,10,100", "P.5,10,100", "recall.5,10,100", "recip_rank", "map", "success.10")
"""The same, as trec_eval's -m takes them."""

CUTOFFS = (5, 10, 100)
HEADER = ("query_id", *METRICS)
ALL = "all"
"""The query id under which a tool that has no values per query writes its means."""


def arguments() -> tuple[str, str, str, bool]:
    """Judgements, run and result as a peer is given them, and whether the input is Parquet."""
    qrels, run, result = sys.argv[1:]
    return qrels, run, result, Path(run).suffix == ".parquet"


def write_values(path: str, rows: Iterable[tuple[str, Sequence[float]]]) -> None:
    """Write a line for each query id and its values, in digits that read back as the same numbers."""
    with Path(path).open("w") as file:
        file.write("\t".join(HEADER) + "\n")
        file.writelines(f"{query}\t" + "\t".join(map(repr, values)) + "\n" for query, values in rows)


def write_means(means: Iterable[float]) -> None:
    """Print the mean of each metric."""
    for name, mean in zip(METRICS, means, strict=True):
        sys.stdout.write(f"{name}\t{mean!r}\n")
