"""Names that other tools have for metrics: those that mean one of ours, and those of metrics that are not here.

Names are compared without case, "-" and "_": `R_cap`, `r-precision` and `Hit_Rate` are known, too.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from rankbeam.transforms.records.errors import InputError


def plain(name: str) -> str:
    """A name without case, hyphens and underscores.

    >>> plain("Hit_Rate"), plain("r-precision")
    ('hitrate', 'rprecision')
    """
    return name.lower().replace("-", "").replace("_", "")


SAME: Mapping[str, str] = MappingProxyType(
    {
        "hit_rate": "Success",  # ranx
        "accuracy": "Success",  # BEIR, MTEB
        "hits": "NumRelRet",  # ranx
        "ndcg_burges": "nDCG(gain=exp)",  # ranx
        "dcg_burges": "DCG(gain=exp)",  # ranx
        "r_precision": "Rprec",  # ranx
        "recip_rank": "RR",  # trec_eval
        "mean_reciprocal_rank": "RR",
        "mean_average_precision": "AP",
        "average_precision": "AP",
        "gmap": "logAP",
        "f1_score": "F1",
        "recall_cap": "Rcap",  # BEIR
        "subtopic_recall": "StRecall",
    }
)
"""Names that mean a metric of ours."""

FOREIGN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "gm_bpref": ("trec_eval's geometric mean of Bpref", "logAP"),
        "11pt_avg": ("trec_eval's interpolated precision, averaged over 11 levels", "IPrec(recall=0.5)"),
        "ndcg_rel": ("a metric of trec_eval", "nDCG"),
        "Rndcg": ("a metric of trec_eval", "nDCG"),
        "G": ("a metric of trec_eval", "nDCG"),
        "binG": ("a metric of trec_eval", "nDCG"),
        "relative_P": ("a metric of trec_eval", "Rcap"),
        "utility": ("a metric of trec_eval", "SetF"),
        "relstring": ("a text of trec_eval", "Success"),
        "NRBP": ("a metric of subtopics", "ERR_IA"),
        "nERR": ("a metric of ir_measures", "ERR"),
        "INST": ("a metric of ir_measures", "RBP"),
        "INSQ": ("a metric of ir_measures", "RBP"),
        "BPM": ("a metric of ir_measures", "RBP"),
        "SDCG": ("a metric of ir_measures", "nDCG"),
        "Compat": ("a metric of ir_measures", "RBP"),
        "Accuracy_pairs": ("a metric of ir_measures", "Bpref"),
        "hole": ("BEIR's share of documents without a judgement, which is 1 - Judged", "Judged"),
        "groundedness": ("a metric of Vertex AI", "Faithfulness"),
        "response_relevancy": ("a metric of ragas", "AnswerRelevance(ragas)"),
        "factual_correctness": ("a metric of ragas", "ClaimF1"),
        "semantic_similarity": ("a metric of ragas", "AnswerSimilarity"),
        "context_entity_recall": ("a metric of ragas", "ContextRecall"),
        "context_entities_recall": ("a metric of ragas", "ContextRecall"),
        "llm_context_recall": ("a metric of ragas", "ContextRecall(ragas)"),
        "contextual_recall": ("a metric of DeepEval", "ContextRecall"),
        "contextual_precision": ("a metric of DeepEval", "ContextAP"),
        "contextual_relevancy": ("a metric of DeepEval", "ContextRelevance"),
        "meteor": ("a metric of words that texts share", "ROUGE-L"),
        "bert_score": ("a metric of embeddings of tokens", "AnswerSimilarity"),
        "sem_score": ("AutoRAG's cosine of embeddings", "AnswerSimilarity"),
        "coherence": ("a metric of an answer's style", "AnswerRelevance"),
        "fluency": ("a metric of an answer's style", "AnswerRelevance"),
    }
)
"""Metrics that are not here: what each is, and the nearest one of ours."""

_SAME = {plain(name): meant for name, meant in SAME.items()}
_FOREIGN = {plain(name): (name, *known) for name, known in FOREIGN.items()}


def meant_by(name: str) -> str | None:
    """Our name, perhaps with options in brackets, of a metric that has another name elsewhere; None if unknown."""
    return _SAME.get(plain(name))


def refuse_homonym(name: str) -> None:
    """Refuse a name that, exactly so written, is another metric elsewhere than in any other case."""
    if name == "Accuracy":
        problem = "it is ir_measures' share of pairs in which a relevant document ranks before one that is not"
        advice = "BEIR's accuracy@k, in lower case, is Success@k"
        raise InputError(f"rankbeam has no metric {name!r}: {problem}; the nearest one is Bpref, and {advice}")


def option_elsewhere(option: str, value: str, options: Collection[str]) -> str | None:
    """A hint for an option of another tool; None where it is unknown, or the metric has no such option.

    >>> option_elsewhere("dcg", "'exp-log2'", ["gain"])
    "ir_measures' dcg='exp-log2' is gain=exp here"
    """
    if option != "dcg" or "gain" not in options:
        return None
    return f"ir_measures' dcg={value} is gain={'exp' if 'exp' in value else 'linear'} here"


def notes(words: Iterable[str]) -> Iterator[str]:
    """Notes on names of metrics of rankings that other tools define differently."""
    for word in dict.fromkeys(words):
        name, _, options = word.partition("@")[0].strip().partition("(")
        if word == "rbp":
            yield "rbp is RBP(graded=True,p=0.9), as in trec_eval; RBP counts relevant documents alike, with p=0.8"
        elif plain(name) in ("gmap", "gmmap"):
            yield f"{word} is the metric logAP, AP on a logarithmic scale; the geometric mean of AP is shown beside it"
        elif name.lower() == "rbp" and "graded" not in options and "rel" not in options:
            yield f"{word} counts relevant documents alike; ir_measures' RBP without rel= is graded: RBP(graded=True)"


def refuse_foreign(name: str) -> None:
    if (known := _FOREIGN.get(plain(name))) is not None:
        _, what, nearest = known
        raise InputError(f"rankbeam has no metric {name!r}: it is {what}; the nearest one is {nearest}")
