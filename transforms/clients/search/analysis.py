"""Terms of texts: words in composed form and lower case, without stop words, reduced to their stems."""

import runpy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import Stemmer

from rankbeam.transforms.kernels.search.words import PATTERN, Words, fold_case, pairs_and_words, pairs_of, words_of

Tokenizer = Literal["words", "bigrams"]
WORDS: Tokenizer = "words"

STOP_WORDS = (
    "chinese", "danish", "dutch", "english", "english_plus", "french", "german", "italian",
    "korean", "norwegian", "portuguese", "russian", "spanish", "swedish", "turkish",
)  # fmt: skip
_SHORT = {"english": "EN", "english_plus": "EN_PLUS"}


@dataclass(frozen=True)
class Analysis:
    """Rules that turn texts into terms."""

    stemming: str
    stop_words: str | tuple[str, ...]
    tokenizer: Tokenizer = WORDS  # "words", or "bigrams": pairs of characters, for scripts without blanks between words

    @property
    def parameters(self) -> list[object]:
        """Everything that affects the terms, as JSON values; indexes of earlier releases have the first two."""
        return [self.stemming, self.stop_words, *([] if self.tokenizer == WORDS else [self.tokenizer])]

    def words(self, texts: Sequence[str]) -> Words:
        """The words of texts, with stop words and before stemming."""
        return words_of(texts) if self.tokenizer == WORDS else pairs_of(texts)

    @cached_property
    def dropped(self) -> frozenset[str]:
        if not isinstance(self.stop_words, str):
            return frozenset(self.stop_words)
        if self.stop_words == "none":
            return frozenset()
        return listed_stop_words(self.stop_words)

    def terms(self, words: list[str]) -> list[str | None]:
        """The term of each word; None for a stop word."""
        stems = words if self._stemmer is None else self._stemmer.stemWords(words)
        return [None if word in self.dropped else stem for word, stem in zip(words, stems, strict=True)]

    def of_text(self, text: str) -> list[str]:
        if self.tokenizer == WORDS:
            words = PATTERN.findall(fold_case(text))
        else:
            words = [term for term, _ in pairs_and_words(fold_case(text))]
        return [term for term in self.terms(words) if term is not None]

    @cached_property
    def _stemmer(self) -> Any:
        return None if self.stemming == "none" else Stemmer.Stemmer(self.stemming)


def listed_stop_words(language: str) -> frozenset[str]:
    """The stop words of one of STOP_WORDS, from bm25s; none for other languages.

    >>> "the" in listed_stop_words("english"), len(listed_stop_words("finnish"))
    (True, 0)
    """
    return frozenset(_lists().get(f"STOPWORDS_{_SHORT.get(language, language.upper())}", ()))


@cache
def _lists() -> dict[str, Any]:
    package = find_spec("bm25s")  # only its file of lists, to avoid importing scipy, which nothing else here needs
    if package is None or package.origin is None:
        raise ImportError("the package bm25s, whose stop words are used, is not installed")
    return runpy.run_path(str(Path(package.origin).with_name("stopwords.py")))
