"""Overlap of an answer's words with a reference answer, or with other answers: metrics from 0 to 1 without a judge."""

import math
import re
import string
from collections import Counter
from collections.abc import Sequence

from rankbeam.transforms.kernels.judged import Undefined, Value

_CITATION = re.compile(r"(?<!\s)\s*+\[\d+(?:\s*[,;–-]\s*\d+)*\]")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_ROUGE_TOKEN = re.compile(r"[a-z0-9]+")
_LETTER_ORDER, _CHRF_BETA, _WORD_ORDER = 6, 2, 4
# The tokenizer of mteval-v13a: symbols apart; periods, commas and dashes apart unless they are inside a number.
_13A = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ENTITIES = {"<skipped>": "", "-\n": "", "\n": " ", "&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}


def without_citations(text: str) -> str:
    """The text without marks such as `[1]` or `[2, 3]`.

    >>> without_citations("Open Billing [1], then Export [2, 3].")
    'Open Billing, then Export.'
    """
    return _CITATION.sub("", text)


def normalized(text: str) -> str:
    """A text as SQuAD compares it: lower case, without punctuation, articles and surplus white space.

    >>> normalized("The  Eiffel-Tower, in Paris!")
    'eiffeltower in paris'
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, reference: str) -> float:
    """1 if both texts are equal after SQuAD's normalization (Rajpurkar et al., EMNLP 2016).

    >>> exact_match("The Nile.", "nile"), exact_match("the Nile river", "nile")
    (1.0, 0.0)
    """
    return float(normalized(answer) == normalized(reference))


def token_f1(answer: str, reference: str) -> float:
    """F1 of the words that both texts have, after SQuAD's normalization; two texts without words are equal.

    >>> token_f1("the Nile river", "The Nile"), token_f1("", "...")
    (0.6666666666666666, 1.0)
    """
    ours, theirs = normalized(answer).split(), normalized(reference).split()
    if not ours or not theirs:
        return float(ours == theirs)
    return 2 * (Counter(ours) & Counter(theirs)).total() / (len(ours) + len(theirs))


def consistency(samples: Sequence[str]) -> Value:
    """Mean F1 of the words of one sampled answer and each of the others: over all samples, the mean of all pairs.

    Args:
        samples: texts of all answers to one query, the one that is scored first.

    >>> consistency(["the Nile", "Nile", "a river"]), consistency(["the Nile"])
    (0.5, <Undefined.ONE_SAMPLE: 'one_sample'>)
    """
    first, *others = samples
    return sum(token_f1(first, other) for other in others) / len(others) if others else Undefined.ONE_SAMPLE


def rouge_l(answer: str, reference: str) -> float:
    """ROUGE-L: F1 of the longest common subsequence of words (Lin 2004; β = 1 and tokens as in rouge-score).

    Words are runs of the letters a to z and digits, so that texts in other scripts have none.

    >>> rouge_l("police killed the gunman", "police kill the gunman")
    0.75
    """
    ours, theirs = _ROUGE_TOKEN.findall(answer.lower()), _ROUGE_TOKEN.findall(reference.lower())
    common = longest_common(ours, theirs)
    return 2 * common / (len(ours) + len(theirs)) if common else 0.0


def longest_common(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """Length of the longest common subsequence, with integers as bit vectors (Hyyrö 2004).

    >>> longest_common("abcbdab", "bdcaba")
    4
    """
    places: Counter[str] = Counter()
    for place, word in enumerate(ours):
        places[word] |= 1 << place
    every = (1 << len(ours)) - 1
    free = every
    for word in theirs:
        matches = free & places[word]
        free = ((free + matches) | (free - matches)) & every
    return len(ours) - free.bit_count()


def bleu(answer: str, reference: str) -> float:
    """BLEU of one answer: n-grams of up to four words, with a penalty if it is shorter (Papineni et al., ACL 2002).

    As `sentence_bleu` of sacrebleu, over 100: nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp.

    >>> round(bleu("the cat sat on a mat", "the cat sat on the mat"), 4)
    0.5373
    """
    ours, theirs = _words_13a(answer), _words_13a(reference)
    logarithms, halving = [], 1.0
    for order in range(1, _WORD_ORDER + 1):
        grams = _ngrams(ours, order)
        if not grams:
            break
        common = (grams & _ngrams(theirs, order)).total()
        if order == 1 and not common:  # then no longer n-gram is common, either
            return 0.0
        if not common:
            halving *= 2
        logarithms.append(math.log((common or 1 / halving) / grams.total()))
    if not logarithms:
        return 0.0
    penalty = min(0.0, 1 - len(theirs) / len(ours))
    return math.exp(penalty + math.fsum(logarithms) / len(logarithms))


def chrf(answer: str, reference: str) -> float:
    """chrF2: F2 of n-grams of one to six characters, without white space (Popović, WMT 2015).

    As `sentence_chrf` of sacrebleu, over 100: nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no.

    >>> round(chrf("open billing", "open the billing page"), 4)
    0.4165
    """
    ours, theirs = "".join(answer.split()), "".join(reference.split())
    shares = [
        ((own & other).total() / own.total(), (own & other).total() / other.total())
        for order in range(1, _LETTER_ORDER + 1)
        if (own := _ngrams(ours, order)) and (other := _ngrams(theirs, order))
    ]
    precision, recall = (math.fsum(column) / len(shares) for column in zip(*shares, strict=True)) if shares else (0, 0)
    weight = _CHRF_BETA**2
    return (1 + weight) * precision * recall / (weight * precision + recall) if precision + recall else 0.0


def _ngrams(items: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(items[place : place + order]) for place in range(len(items) - order + 1))


def _words_13a(text: str) -> list[str]:
    text = text.rstrip()
    for written, meant in _ENTITIES.items():
        text = text.replace(written, meant)
    text = f" {text} "
    for pattern, replacement in _13A:
        text = pattern.sub(replacement, text)
    return text.split()
