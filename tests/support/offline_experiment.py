"""A small experiment whose answers are made and judged by the models of this process."""

import json
from pathlib import Path
from typing import Any

from support.inputs import trec_qrels, write

DOCUMENTS = {
    "keys": "Keys expire after ninety days. An administrator renews them.",
    "bills": "Bills are sent on the first day of a month. Cards are charged two days later.",
    "seats": "Seats that are removed are not paid back. The number is lowered at renewal.",
    "again": "Seats that are removed are not paid back. Ask the owner.",
}
QUESTIONS = {
    "k1": ("When do keys expire, and who renews them?", "Keys expire after ninety days.", "keys"),
    "b1": ("On which day are bills sent?", "Bills are sent on the first day of a month.", "bills"),
    "s1": ("Are seats that are removed paid back?", "No. The number of seats is lowered at renewal.", "seats"),
}
JUDGED = ["Faithfulness", "ClaimRecall", "ContextRecall", "ContextRelevance", "AnswerRelevance"]


def answered(folder: Path, **more: Any) -> dict[str, Any]:
    """An experiment of two configurations, which share contexts and so verdicts."""
    corpus = [{"_id": name, "text": text} for name, text in DOCUMENTS.items()]
    qrels = trec_qrels([(name, document, 1.0) for name, (*_, document) in QUESTIONS.items()])
    queries = [
        {"_id": name, "text": text, "metadata": {"answer": answer}} for name, (text, answer, _) in QUESTIONS.items()
    ]
    return {
        "dataset": {
            "qrels": write(folder / "answered-qrels", qrels),
            "queries": write(folder / "answered-queries.jsonl", "".join(json.dumps(row) + "\n" for row in queries)),
            "corpus": write(folder / "answered-corpus.jsonl", "".join(json.dumps(row) + "\n" for row in corpus)),
            "answers": "answer",
        },
        "services": {"reader": {"type": "extractive"}, "overlap": {"type": "lexical"}},
        "configurations": [
            {"name": f"first-{count}", "retriever": {"type": "bm25"}, "top_k": 3,
             "generate": {"service": "reader", "contexts": count}}
            for count in (1, 3)
        ],
        "judge": {"service": "overlap"},
        "metrics": ["RR", *JUDGED],
        "statistics": {"replicates": 0},
        **more,
    }  # fmt: skip
