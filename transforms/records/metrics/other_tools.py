"""Names that other tools have for metrics: those that mean one of ours, and those of metrics that rankbeam lacks.

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
        "top_k_accuracy": "Success",  # BEIR
        "hits": "NumRelRet",  # ranx
        "ndcg_burges": "nDCG(gain=exp)",  # ranx
        "dcg_burges": "DCG(gain=exp)",  # ranx
        "r_precision": "Rprec",  # ranx
        "recip_rank": "RR",  # trec_eval
        "mean_reciprocal_rank": "RR",
        "mean_average_precision": "AP",
        "average_precision": "AP",
        "gmap": "logAP",
        "unj": "Unjudged",  # trec_eval
        "f1_score": "F1",
        "recall_cap": "Rcap",  # BEIR
        "subtopic_recall": "StRecall",
        "strec": "StRecall",  # ndeval
        "MAP_IA": "AP_IA",  # ir_measures, ndeval
        "SetRelP": "SetP(relative=True)",  # ir_measures
        "α_nDCG": "alpha_nDCG",  # ir_measures
        "α_DCG": "alpha_DCG",  # ir_measures
    }
)
"""Names that mean a metric of ours."""

_EXPERIMENT = "called experimental by trec_eval, and hardly used"
_QUESTION = "a question to a judge, which is a criterion of your own here (judge: criteria)"

FOREIGN: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "ndcg_rel": (_EXPERIMENT, "nDCG"),
        "Rndcg": (_EXPERIMENT, "nDCG"),
        "G": (_EXPERIMENT, "nDCG"),
        "binG": (_EXPERIMENT, "AP"),
        "ideal_dcg": ("trec_eval's divisor of nDCG, which does not depend on the ranking", "DCG"),
        "rbp_resid": ("trec_eval's bound on rbp, and with the metric Judged every metric has bounds here", "Judged"),
        "utility": ("trec_eval's sum of weighted counts, which can be negative", "SetF"),
        "yaap": ("trec_eval's logarithm of the odds of AP, which can be negative", "logAP"),
        **dict.fromkeys(("prefs_simp", "prefs_pair", "prefs_avgjg"), ("of judgements that are preferences", "Bpref")),
        **dict.fromkeys(("map_avgjg", "P_avgjg", "Rprec_mult_avgjg"), ("of judgements by several people", "AP")),
        "num_q": ("the number of queries, which --format trec prints", "NumRel"),
        "relstring": ("a text of trec_eval", "Success"),
        "nERR": ("ERR over that of the ideal ranking", "ERR"),
        "hole": ("BEIR's share of documents that no query has a judgement of", "Unjudged"),
        "groundedness": ("a metric of Vertex AI", "Faithfulness"),
        "response_relevancy": ("a metric of ragas", "AnswerRelevance(ragas)"),
        "factual_correctness": ("a metric of ragas", "ClaimF1"),
        "semantic_similarity": ("a metric of ragas", "AnswerSimilarity"),
        "context_entity_recall": ("a metric of ragas", "ContextRecall"),
        "context_entities_recall": ("a metric of ragas", "ContextRecall"),
        "llm_context_recall": ("a metric of ragas", "ContextRecall(ragas)"),
        "llm_context_precision_without_reference": ("a metric of ragas", "ContextAP(answer)"),
        "llm_context_precision_with_reference": ("a metric of ragas", "ContextAP"),
        "non_llm_string_similarity": ("a metric of ragas", "chrF"),
        "id_based_context_recall": ("ragas's recall of ids", "R"),
        "id_based_context_precision": ("ragas's precision of ids", "SetP"),
        "response_groundedness": ("a metric of ragas", "Faithfulness"),
        "answer_accuracy": ("a metric of ragas", "ClaimF1"),
        "tool_call_accuracy": ("ragas's comparison of tool calls", "TrajectoryExact"),
        "tool_call_f1": ("ragas's F1 of tool calls", "TrajectoryRecall"),
        "tool_correctness": ("a metric of DeepEval", "TrajectoryRecall(args=ignore)"),
        "contextual_recall": ("a metric of DeepEval", "ContextRecall"),
        "contextual_precision": ("a metric of DeepEval", "ContextAP"),
        "contextual_relevancy": ("a metric of DeepEval", "ContextRelevance"),
        "meteor": ("a metric of words that texts share", "ROUGE-L"),
        "bert_score": ("a metric of embeddings of tokens", "AnswerSimilarity"),
        "sem_score": ("AutoRAG's cosine of embeddings", "AnswerSimilarity"),
        "retrieval_recall": ("a metric of AutoRAG", "R"),
        "retrieval_precision": ("a metric of AutoRAG", "SetP"),
        "retrieval_f1": ("a metric of AutoRAG", "SetF"),
        "retrieval_ndcg": ("a metric of AutoRAG", "nDCG"),
        "retrieval_mrr": ("a metric of AutoRAG", "RR"),
        "retrieval_map": ("AutoRAG's average precision, divided by the relevant documents retrieved", "AP"),
        "GEval": (_QUESTION, "Criterion(NAME)"),
        "aspect_critic": (_QUESTION, "Criterion(NAME)"),
        "rubrics_score": (_QUESTION, "Criterion(NAME)"),
        "bias": (_QUESTION, "Criterion(NAME)"),
        "toxicity": (_QUESTION, "Criterion(NAME)"),
        "task_completion": (_QUESTION, "Criterion(NAME)"),
        "coherence": ("a metric of an answer's style", "AnswerRelevance"),
        "fluency": ("a metric of an answer's style", "AnswerRelevance"),
    }
)
"""Metrics that rankbeam lacks: a description of each, and the nearest one of ours."""

_SAME = {plain(name): meant for name, meant in SAME.items()}
_FOREIGN = {plain(name): (name, *known) for name, known in FOREIGN.items()}


def meant_by(name: str) -> str | None:
    """Our name, perhaps with options in brackets, of a metric that has another name elsewhere; None if unknown."""
    return _SAME.get(plain(name))


def refuse_homonym(name: str) -> None:
    """Refuse a name that, in exactly this spelling, is another metric elsewhere."""
    if name == "Accuracy":
        problem = "it is ir_measures' share of pairs with the relevant document first, which ignores missing ones"
        advice = "BEIR's accuracy@k, in lower case, is Success@k"
        raise InputError(f"rankbeam has no metric {name!r}: {problem}; the nearest one is Bpref, and {advice}")


def option_here(option: str, value: str, options: Collection[str]) -> tuple[str, str]:
    """Our option and value for those of another tool; others are unchanged.

    >>> option_here("dcg", "'exp-log2'", ["gain"]), option_here("rel", "2", ["rel"])
    (('gain', 'exp'), ('rel', '2'))
    """
    if option != "dcg" or "gain" not in options:
        return option, value
    return "gain", _DCGS.get(value.strip("'\""), value)


_DCGS = {"log2": "linear", "exp-log2": "exp"}  # ir_measures


def canonical_gains(written: str) -> str | None:
    """Gains of grades, as in ir_measures' nDCG(gains={1:5,2:7}), in one form; None if they are not numbers from 0.

    >>> canonical_gains("{2: 7, 1: 5.0}"), canonical_gains("{1:-1}")
    ('{1:5,2:7}', None)
    """
    try:
        pairs = [tuple(map(float, pair.split(":"))) for pair in written.removeprefix("{").removesuffix("}").split(",")]
        gains = {grade: gain for grade, gain in pairs if 0.0 <= gain < 1e15 and abs(grade) < 1e15}
    except ValueError:
        return None
    if len(gains) < len(pairs):
        return None
    numbers = [":".join(repr(number).removesuffix(".0") for number in pair) for pair in sorted(gains.items())]
    return f"{{{','.join(numbers)}}}"


_GAINS = {"insq", "inst", "bpm", "sdcg", "nerr8", "nerr9", "nerr10", "nerr11"}


def notes(words: Iterable[str]) -> Iterator[str]:
    """Notes on names of metrics of rankings that other tools define differently."""
    for word in dict.fromkeys(words):
        name, _, options = word.partition("@")[0].strip().partition("(")
        if word == "rbp":
            yield "rbp is RBP(graded=True,p=0.9), as in trec_eval; RBP counts relevant documents alike, with p=0.8"
        elif plain(name) in ("gmap", "gmmap", "gmbpref"):
            base = "Bpref" if plain(name) == "gmbpref" else "AP"
            scale = f"log{base}, {base} on a logarithmic scale"
            yield f"{word} is the metric {scale}; the geometric mean of {base} is shown beside it"
        elif plain(name) in _GAINS and "max_rel" not in options:
            yield f"{word} counts grade 4 as the full gain; set max_rel to the highest grade of your judgements"
        elif name.lower() == "rbp" and "graded" not in options and "rel" not in options:
            elsewhere = "ir_measures' RBP without rel= multiplies by the grade, RBP(graded=True) by grade / highest"
            yield f"{word} counts relevant documents alike; {elsewhere}"


def refuse_foreign(name: str) -> None:
    if (entry := _FOREIGN.get(plain(name).removesuffix("metric"))) is not None:  # DeepEval: BiasMetric
        _, description, nearest = entry
        raise InputError(f"rankbeam has no metric {name!r}: it is {description}; the nearest one is {nearest}")
