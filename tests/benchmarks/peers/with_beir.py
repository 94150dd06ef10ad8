"""BEIR's EvaluateRetrieval; it has means only, of five decimals, and reads no TREC text itself."""

from beir.retrieval.evaluation import EvaluateRetrieval
from values import ALL, CUTOFFS, arguments, write_means, write_values
from with_pytrec_eval import read_both


def main() -> None:
    """Score a run."""
    qrels, run, result, parquet = arguments()
    judged, retrieved = read_both(qrels, run, parquet)
    retrieved = {query: ranking for query, ranking in retrieved.items() if query in judged}  # MRR stops at others
    deep = max(CUTOFFS[-1], *map(len, retrieved.values()))  # MAP and MRR have a cutoff here: one that cuts nothing off
    ndcg, ap, recall, precision = EvaluateRetrieval.evaluate(judged, retrieved, sorted({*CUTOFFS, deep}))
    rr = EvaluateRetrieval.evaluate_custom(judged, retrieved, [deep], "mrr")
    success = EvaluateRetrieval.evaluate_custom(judged, retrieved, [10], "acc")
    cut = [(ndcg, "NDCG"), (precision, "P"), (recall, "Recall")]
    means = [float(ranking[f"{name}@{cutoff}"]) for ranking, name in cut for cutoff in CUTOFFS]
    means += [float(rr[f"MRR@{deep}"]), float(ap[f"MAP@{deep}"]), float(success["Accuracy@10"])]
    write_values(result, [(ALL, means)])
    write_means(means)


if __name__ == "__main__":
    main()
