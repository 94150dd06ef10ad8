"""Models in this process: connections that answer at once, and stems of words."""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import AfterValidator

from rankbeam.transforms.clients.models.base import ModelParameters, Stored, prompt_of
from rankbeam.transforms.kernels.search.words import to_nfc
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import did_you_mean
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens

_WORD = re.compile(r"\w\w+")
_TEXTS = 128  # a text is compared with many others in short succession
_CALLS = 16  # the loop makes one call after another; without a limit, the rate would lead to hundreds of lanes


def _known_language(value: str) -> str:
    import Stemmer

    if value not in Stemmer.algorithms():
        raise ValueError(f"unknown language; {did_you_mean(value, Stemmer.algorithms())}")
    return value


Language = Annotated[str, AfterValidator(_known_language)]  # a Snowball algorithm, such as "english"


@functools.cache
def _tools(language: str) -> tuple[Callable[[list[str]], list[str]], frozenset[str]]:
    import Stemmer

    from rankbeam.transforms.clients.search.analysis import listed_stop_words

    return Stemmer.Stemmer(language).stemWords, listed_stop_words(language)


@functools.lru_cache(_TEXTS)
def stems(text: str, language: str) -> frozenset[str]:
    """The stems of the words of a text, without stop words.

    >>> sorted(stems("The invoices are printed, and invoicing ends.", "english"))
    ['end', 'invoic', 'print']
    """
    stem, stop_words = _tools(language)
    return frozenset(stem([word for word in _WORD.findall(to_nfc(text).lower()) if word not in stop_words]))


def share(part: frozenset[str], whole: frozenset[str]) -> float:
    """The share of the stems in `part` that are also in `whole`; 0 if `part` is empty.

    >>> share(frozenset("ab"), frozenset("bc"))
    0.5
    """
    return len(part & whole) / len(part) if part else 0.0


class LocalModel(ModelParameters):
    """A model in this process; a subclass defines its answers.

    Attributes:
        language: language of the texts.
    """

    model: str = "1"
    language: Language = "english"

    default_quota: ClassVar[Quota] = Quota(requests_per_minute=6_000_000, concurrent_calls=_CALLS)

    def answer(self, prompt: Prompt) -> Stored:
        """The answer to a prompt; always the same for the same prompt."""
        raise NotImplementedError(f"{type(self).__name__} has no answer()")

    async def connect(self) -> "LocalConnection":
        return LocalConnection(self)

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  the Protocol's
        return NO_TOKENS


@dataclass(frozen=True)
class LocalConnection:
    """A connection that answers in this process."""

    model: LocalModel

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  the Protocol's
        return Reply(self.model.answer(prompt_of(payload)).written())

    async def close(self) -> None:
        """Do nothing, as nothing is open."""
