"""Offline models: deterministic, of a judge's form, and as good on the helpdesk example as word overlap is."""

import asyncio
import json
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from support.data import REPOSITORY
from support.judging import VARIABLES

from rankbeam.transforms.clients.models.base import Completion, Embedding, ModelParameters
from rankbeam.transforms.clients.models.local import share, stems
from rankbeam.transforms.clients.models.offline import NO_ANSWER, Extractive, Hashed, Lexical
from rankbeam.transforms.clients.retrievers.lexical import Bm25
from rankbeam.transforms.judge.steps import step_named
from rankbeam.transforms.judge.steps.support import SupportVerdict
from rankbeam.transforms.judge.templates import built_in_templates
from rankbeam.transforms.kernels.judged import AnswerKind
from rankbeam.transforms.kernels.judged_ragas import cosine
from rankbeam.transforms.kernels.sentences import sentences
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind
from rankbeam.transforms.records.queries import Query

HELPDESK = REPOSITORY / "examples" / "helpdesk"
CONTEXTS = [
    {"id": "d1", "text": "Only owners can pay. Invoices are PDFs in the Admin console."},
    {"id": "d2", "text": "Members see no invoices. It rains."},
]
VALUES: dict[str, Any] = {
    "query": "Who can pay an invoice?", "text": "Owners pay. It snows.", "evidence": "Only owners can pay invoices.",
    "context": "Only owners can pay invoices.", "answer": "Owners can pay an invoice [1].",
    "claims": {"0": "Owners pay.", "1": "Snow falls on members."}, "nuggets": {"0": "Owners pay."},
    "contexts": {"0": "Owners pay.", "1": "Snow falls."},
    "sentences": ["Only owners can pay.", "It rains."],
    "criterion": "Is it polite?", "examples": "",
    "verdicts": "yes | no",
    "texts": [{"id": "query", "text": "Who can pay?"}, {"id": "answer", "text": "Only owners can pay."}],
}  # fmt: skip


def reply_of(model: ModelParameters, prompt: Prompt) -> Any:
    """A model's answer through its connection."""

    async def ask() -> Any:
        connection = await model.connect()
        try:
            return model.read((await connection.call(prompt.payload(), 10.0, 1)).answer)
        finally:
            await connection.close()

    return asyncio.run(ask())


def judge(step: str, **values: Any) -> Any:
    """The lexical judge's answer to a step, as a judge's answer is read."""
    variables = {name: VALUES[name] for name in VARIABLES[step]} | values
    answer = reply_of(Lexical(), built_in_templates()[step].prompt(variables))
    assert isinstance(answer, Completion)
    return step_named(step).read(variables, answer.text)


@pytest.mark.parametrize("step", VARIABLES)
def test_every_step_has_an_answer_of_its_form_and_always_the_same(step: str) -> None:
    assert judge(step) == judge(step)


def test_a_claim_is_supported_where_half_of_its_words_stand_in_the_evidence() -> None:
    assert [one.verdict for one in judge("support")] == [SupportVerdict.SUPPORTED, SupportVerdict.NOT_STATED]
    assert [claim.text for claim in judge("claims")] == ["Owners pay.", "It snows."]


@pytest.mark.parametrize(
    ("answer", "kind", "relevance"),
    [
        ("Owners can pay an invoice.", AnswerKind.ANSWERED, 3),
        ("Owners pay.", AnswerKind.PARTIAL, 1),
        ("Snow falls.", AnswerKind.OFF_TOPIC, 0),
        ("I cannot answer who can pay an invoice.", AnswerKind.REFUSED, 0),
        (NO_ANSWER, AnswerKind.REFUSED, 0),
    ],
)
def test_a_refusal_is_known_by_its_words(answer: str, kind: AnswerKind, relevance: int) -> None:
    verdict = judge("answer_kind", answer=answer)
    assert (verdict.kind, verdict.relevance) == (kind, relevance)
    if kind is AnswerKind.REFUSED:
        assert judge("claims", text=answer) == ()


def test_extractive_answers_with_sentences_and_the_numbers_of_their_contexts() -> None:
    values = {"query": "Who can pay, and what do members see?", "contexts": CONTEXTS}
    assert (
        reply_of(Extractive(), Prompt("answer", values)).text == "Only owners can pay [1]. Members see no invoices [2]."
    )
    assert reply_of(Extractive(most_sentences=1), Prompt("answer", values)).text == "Only owners can pay [1]."
    assert reply_of(Extractive(), Prompt("answer", {"query": "bicycles", "contexts": CONTEXTS})).text == NO_ANSWER
    assert reply_of(Extractive(), Prompt("answer", {"query": "Who can pay?", "contexts": []})).text == NO_ANSWER


def test_hashed_embeddings_are_alike_where_words_are() -> None:
    def embedded(text: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        vector = reply_of(Hashed(), Prompt(EMBED, {"text": text}))
        assert isinstance(vector, Embedding)
        return np.array(vector.vector)

    same, near, far = (embedded(text) for text in ("Owners pay invoices", "The owner pays an invoice", "Snow falls"))
    assert len(same) == 256
    assert cosine(same, near) > 0.9 > 0.5 > abs(cosine(same, far))


@pytest.mark.parametrize(
    ("model", "prompt"),
    [
        (Lexical(), Prompt("answer", {"query": "q", "contexts": []})),
        (Extractive(), Prompt("grade", {"query": "q", "context": "c"})),
        (Hashed(), Prompt("answer", {"query": "q"})),
        (Hashed(), Prompt(EMBED, {"text": " "})),
    ],
)
def test_a_step_that_an_offline_model_does_not_know_is_invalid(model: ModelParameters, prompt: Prompt) -> None:
    assert model.offline is not None
    assert "no language model" in model.offline
    assert model.most_tokens(prompt.payload()).total == 0
    with pytest.raises(CallError) as caught:
        reply_of(model, prompt)
    assert caught.value.kind is FailureKind.INVALID


def test_sentences_end_at_marks_and_lines() -> None:
    text = "Version 2.5 is out (see p. 3). Is it?\n- yes\n\n今日は。はい。 The end"
    texts = [text[start:end] for start, end in sentences(text)]
    assert texts == ["Version 2.5 is out (see p. 3).", "Is it?", "- yes", "今日は。", "はい。", "The end"]
    assert sentences(" \n ") == []


def test_the_lexical_judge_on_the_helpdesk_example_is_near_what_was_measured() -> None:
    queries = [json.loads(line) for line in (HELPDESK / "queries.jsonl").read_text().splitlines()]
    corpus = {row["_id"]: row["text"] for row in map(json.loads, (HELPDESK / "corpus.jsonl").read_text().splitlines())}
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (HELPDESK / "qrels" / "test.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        grades[query][document] = int(grade)
    retriever = Bm25().open(str(HELPDESK / "corpus.jsonl"))
    words = {document: stems(text, "english") for document, text in corpus.items()}
    recalls: dict[int, list[float]] = defaultdict(list)
    shares: dict[int, list[float]] = defaultdict(list)
    for query in queries:
        retrieved = retriever.retrieve(Query(query["_id"], query["text"]), 10).doc_ids
        answer = query["metadata"]["answer"]
        claims = [stems(answer[start:end], "english") for start, end in sentences(answer)]
        for k in (1, 3, 5, 10):
            supported = [any(share(claim, words[document]) >= 0.5 for document in retrieved[:k]) for claim in claims]
            recalls[k].append(sum(supported) / len(supported))
        for document in {*retrieved, *grades[query["_id"]]}:
            grade = grades[query["_id"]].get(document, 0)
            shares[grade].append(share(stems(answer, "english"), words[document]))
    # Measured with weights by inverse document frequency: .586, .789, .898, .938; .128, .274, .401, .790; .58.
    assert [np.mean(recalls[k]) for k in (1, 3, 5, 10)] == pytest.approx([0.586, 0.789, 0.898, 0.938], abs=0.04)
    assert [np.mean(shares[grade]) for grade in range(4)] == pytest.approx([0.128, 0.274, 0.401, 0.790], abs=0.07)
    pairs = [(grade, value) for grade, values in shares.items() for value in values]
    assert spearmanr(*zip(*pairs, strict=True)).statistic == pytest.approx(0.58, abs=0.02)
