"""The documents as the plan needs them: spans to ask about, topics, and links between spans."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import intern

from rankbeam.transforms.clients.models.local import stems
from rankbeam.transforms.goldens.documents import Document
from rankbeam.transforms.goldens.origins import GatheredDocuments
from rankbeam.transforms.goldens.records.items import SourceSpan
from rankbeam.transforms.kernels.chunks import chunk_spans
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.kernels.minhash import first_alike
from rankbeam.transforms.kernels.sentences import sentences
from rankbeam.transforms.kernels.topics import Neighbours, Profile, label, profiles, topic_count, topics
from rankbeam.transforms.kernels.wording import length, words
from rankbeam.transforms.records.errors import InputError, shortened
from rankbeam.transforms.records.judging.answers import CHARACTERS_PER_TOKEN

LEAST_WORDS = 12  # a question is only made from a span with at least this many words
_NOT_IN_QRELS = "\t\0\ufeff"  # in addition to line ends
_LEAST_LINK = 4  # for a question about two documents, the minimum weight of their common words


@dataclass(frozen=True)
class Library:
    """The documents of a benchmark."""

    documents: tuple[Document, ...]  # sorted by id
    passages: tuple[SourceSpan, ...]
    spans: tuple[SourceSpan, ...]
    topics: Mapping[str, int]
    labels: tuple[tuple[str, ...], ...]
    profiles: Mapping[str, Profile]
    too_short: tuple[str, ...]
    duplicates: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    def linked(self, span: SourceSpan) -> SourceSpan | None:
        """The span of another document on the same topic with most words in common; None if no document has enough."""
        profile, topic = self.profiles[span.doc_id], self.topics[span.doc_id]
        nearest = self._neighbours[topic].nearest(profile, span.doc_id, _LEAST_LINK)
        if nearest is None:
            return None
        inside = set(words(span.text))
        there = self._by_document[nearest]
        return max(there, key=lambda other: (len(inside.intersection(words(other.text))), -other.start))

    @cached_property
    def _by_document(self) -> Mapping[str, Sequence[SourceSpan]]:
        return grouped((span.doc_id, span) for span in self.spans)

    @cached_property
    def _neighbours(self) -> Mapping[int, Neighbours]:
        """The documents from which questions are made, by topic."""
        members = grouped((self.topics[name], (name, self.profiles[name])) for name in self._by_document)
        return {topic: Neighbours.of(dict(topic_profiles)) for topic, topic_profiles in members.items()}


def library_of(gathered: GatheredDocuments, span_tokens: int, language: str, path: str) -> Library:
    documents = gathered.documents
    if not documents:
        raise InputError("; ".join(["holds no document that can be read", *gathered.warnings]), path=path)
    _refuse_unwritable([document.id for document in documents], path)
    passages = tuple(span for document in documents for span in spans_of(document, span_tokens))
    long = [span for span in passages if length(words(span.text)) >= LEAST_WORDS]
    if not long:
        problem = f"none of {len(documents):,} documents has a part of {LEAST_WORDS} words: too short for a question"
        raise InputError(problem, path=path)
    same = first_alike([span.text for span in long])
    known = profiles(
        [sorted(map(intern, stems(f"{document.title} {document.text}", language))) for document in documents]
    )
    assigned = topics(known, topic_count(len(documents)))
    members = grouped(sorted(zip(assigned, known, strict=True), key=lambda pair: pair[0]))
    with_spans = {span.doc_id for span in long}
    return Library(
        tuple(documents),
        passages,
        tuple(span for place, span in enumerate(long) if same[place] == place),
        {document.id: topic for document, topic in zip(documents, assigned, strict=True)},
        tuple(label(topic_profiles) for topic_profiles in members.values()),
        {document.id: profile for document, profile in zip(documents, known, strict=True)},
        tuple(document.id for document in documents if document.id not in with_spans),
        {long[place].id: long[first].id for place, first in enumerate(same) if first != place},
        gathered.warnings,
    )


def _refuse_unwritable(ids: Iterable[str], path: str) -> None:
    """Refuse ids that cannot occur in judgements, which are lines with tabs."""
    for name in ids:
        if len(name.splitlines()) > 1 or any(mark in name for mark in _NOT_IN_QRELS):
            problem = f"the id {shortened(repr(name))} has a tab, a line end, a NUL or a byte order mark"
            raise InputError(f"{problem}, which files of judgements cannot hold; change it", path=path)


def spans_of(document: Document, tokens: int) -> Iterator[SourceSpan]:
    """Divide a document into spans of about equal length, between sentences; chunks are unchanged.

    >>> text = "One two three. Four five six. Seven eight nine."
    >>> [span.text for span in spans_of(Document("d", "", text), 8)]
    ['One two three. Four five six.', 'Seven eight nine.']
    >>> [span.text for span in spans_of(Document("d", "", "The owners download invoices"), 4)]
    ['The owners', 'download', 'invoices']
    """
    places = document.chunks or tuple(_places(document.text, tokens * CHARACTERS_PER_TOKEN))
    for start, end in places:
        if document.text[start:end].strip():
            yield SourceSpan(document.id, start, end, document.text[start:end], document.title)


def _places(text: str, most: int) -> Iterator[tuple[int, int]]:
    parts = list(_short(text, most))
    count = max(1, -(-sum(end - start for start, end in parts) // most))
    aim = len(text) / count
    first, last = None, 0
    for start, end in parts:
        if first is not None and (end - first > most or (last - first) + (end - start) / 2 > aim):
            yield first, last
            first = None
        first = start if first is None else first
        last = end
    if first is not None:
        yield first, last


def _short(text: str, most: int) -> Iterator[tuple[int, int]]:
    """The sentences of a text; a sentence that is longer than a span is cut between words."""
    for start, end in sentences(text):
        if end - start <= most:
            yield start, end
        else:
            for first, last in chunk_spans(text[start:end], "characters", most, 0):
                yield start + first, start + last
