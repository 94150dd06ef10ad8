"""Reranking by a cross-encoder in this process: order and scores by NumPy, shared work, cuts, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from support import stage_world
from support.cli import rankbeam
from support.goldens import goldens_file
from support.onnx_models import HEADS, TABLE, WORDS, write_cross_encoder, write_model
from support.stage_world import evaluated, experiment, ids, outcome_of, rankings
from tokenizers import Tokenizer

from rankbeam.transforms.clients.models.onnx import Onnx
from rankbeam.transforms.records.errors import InputError

TWO_WORKERS = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
QUERIES = {"q1": "apple", "q2": "sky blue", "q3": "green red"}
DOCUMENTS = {
    f"d{number}": " ".join(np.random.default_rng(number).choice(WORDS[3:], 4 + number % 5)) for number in range(12)
}


def dataset(folder: Path) -> dict[str, str]:
    for name, texts in (("questions", QUERIES), ("words", {**DOCUMENTS, "d12": ""})):
        rows = ({"_id": key, "text": text, "metadata": {"answer": text}} for key, text in texts.items())
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"{query}\td{place}\t1\n" for place, query in enumerate(QUERIES))
    )
    run = "".join(
        f"{query} Q0 {name} {rank} {99 - rank} t\n"
        for query in QUERIES
        for rank, name in enumerate([*DOCUMENTS, "d12"], 1)
    )
    (folder / "run.trec").write_text(run)
    return {"queries": "questions.jsonl", "qrels": "qrels.tsv", "corpus": "words.jsonl"}


def existing(name: str = "before", **more: Any) -> dict[str, Any]:
    return {"name": name, "retriever": {"type": "run_file", "path": "run.trec"}, **more}


def written(folder: Path, *configurations: dict[str, Any], service: dict[str, Any] | None = None, **more: Any) -> str:
    services = {"pairs": {"type": "onnx", "folder": "pairs", **(service or {})}}
    base = {"services": services, "dataset": dataset(folder), "configurations": list(configurations)}
    return experiment(folder, **{**base, **more})


def plainly(folder: Path, query: str, text: str, limit: int = 512) -> float:
    """The score of a text for a query by the two libraries."""
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(limit)
    one = tokenizer.encode(query, text)
    feeds = {"input_ids": one.ids, "attention_mask": one.attention_mask, "token_type_ids": one.type_ids}
    ((logits,),) = session.run(None, {name: np.array([value]) for name, value in feeds.items()})
    return float(logits[0]) if len(logits) == 1 else float(logits[1]) - float(logits[0])


def by_hand(query: str, text: str) -> float:
    """The same in NumPy, from the words alone."""
    tokens = [[WORDS.index(word) for word in some.split()] for some in (query, text)]
    of_query, of_text = TABLE[[1, *tokens[0], 2]].sum(axis=0), TABLE[[*tokens[1], 2]].sum(axis=0)
    return float((of_query * of_text) @ HEADS[:, 0])


@pytest.mark.long
def test_results_are_ordered_by_the_models_scores(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "pairs")
    configurations = [
        existing(),
        existing("one", rerank={"service": "pairs", "depth": 13}),
        existing("less", rerank={"service": "pairs", "depth": 5}, top_k=3),
    ]
    path = written(tmp_path, *configurations)
    assert "no remote calls" in rankbeam("plan", path).stdout
    outcome = outcome_of(path)
    ranked = rankings(path)
    for query, text in QUERIES.items():
        scores = {name: by_hand(text, words) for name, words in DOCUMENTS.items()}
        own = {name: score for name, score in ranked["one"][query] if score is not None}
        assert own == pytest.approx(scores, abs=1e-5)
        assert own == pytest.approx({name: plainly(folder, text, DOCUMENTS[name]) for name in own}, abs=1e-6)
        assert [name for name, _ in ranked["one"][query]] == [*sorted(scores, key=lambda name: -scores[name]), "d12"]
        first = [f"d{number}" for number in range(5)]
        assert ids(ranked["less"])[query] == sorted(first, key=lambda name: -scores[name])[:3]
    printed = " ".join(outcome.stderr.split())
    assert "one: 3 results of 3 queries have no text for the reranker" in printed
    assert "reranked 36 texts" in printed  # each once for each query, for both depths
    assert not (tmp_path / "out" / "ledger").exists()
    assert "onnxruntime" in json.loads(stage_world.results(path).table("runs").to_pylist()[0]["versions"])


@pytest.mark.campaign
def test_processes_rank_as_one_does(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path / "pairs")
    path = written(tmp_path, existing("one", rerank={"service": "pairs", "depth": 13}))
    evaluated(path)
    assert rankbeam("evaluate", path, "--run-id", "r2", *TWO_WORKERS).status == 0
    assert rankings(path, "r2") == rankings(path)


@pytest.mark.campaign
def test_identity_is_that_of_the_files(tmp_path: Path) -> None:
    def config_id(place: Path, **service: Any) -> str:
        path = written(place, existing("one", rerank={"service": "pairs"}), service=service)
        evaluated(path)
        return str(stage_world.results(path).configurations[0]["config_id"])

    own, moved, other = (tmp_path / name for name in ("own", "moved", "other"))
    write_cross_encoder(own / "pairs")
    write_cross_encoder(moved / "elsewhere")
    write_cross_encoder(other / "pairs", heads=HEADS[:, 1:])
    first = config_id(own)
    assert first == config_id(moved, folder="elsewhere")
    assert len({first, config_id(other), config_id(own, max_tokens=9), config_id(own, query_prefix="x ")}) == 4


@pytest.mark.long
def test_prefixes_are_read_the_second_of_two_classes_counts_and_pairs_that_are_cut_are_counted(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "pairs", heads=HEADS)
    own = {"type": "onnx", "folder": "pairs"}
    services = {"long": own | {"query_prefix": "red ", "document_prefix": "sky "}, "short": own | {"max_tokens": 9}}
    configurations = [existing(name, rerank={"service": name}) for name in services]
    path = written(tmp_path, *configurations, services=services)
    printed = " ".join(outcome_of(path).stderr.split())
    lengths = [len(text.split()) + len(words.split()) for text in QUERIES.values() for words in DOCUMENTS.values()]
    cut = sum(length + 3 > 9 for length in lengths)
    assert 0 < cut < len(lengths)
    assert (
        f"short: {cut} of 36 pairs of query and text have more than 9 tokens, and the end of the longer one is not"
        in printed
    )
    assert "long: " not in printed.partition("short: ")[2]
    for name, query_prefix, document_prefix, limit in (("long", "red ", "sky ", 512), ("short", "", "", 9)):
        for query, hits in rankings(path)[name].items():
            scores = {name: score for name, score in hits if score is not None}
            expected = {
                name: plainly(folder, query_prefix + QUERIES[query], document_prefix + DOCUMENTS[name], limit)
                for name in scores
            }
            assert scores == pytest.approx(expected, abs=1e-5)


@pytest.mark.campaign
def test_several_retrievers_share_the_scores_of_a_query(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path / "pairs")
    rerank = {"service": "pairs", "depth": 13}
    searched = {"name": "bm25", "retriever": {"type": "bm25"}, "rerank": rerank}
    outcome = outcome_of(written(tmp_path, existing("one", rerank=rerank), searched))
    assert "reranked 36 texts" in " ".join(outcome.stderr.split())


@pytest.mark.campaign
def test_a_plan_imagines_what_the_model_would_choose(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path / "pairs")
    one = existing("one", rerank={"service": "pairs", "depth": 9}, generate={"service": "writer", "contexts": 2})
    services = {"pairs": {"type": "onnx", "folder": "pairs"}, "writer": {"type": "extractive"}}
    path = written(tmp_path, one, services=services)
    planned = " ".join(rankbeam("plan", path).stdout.split())
    assert "answer: 3 calls" in planned
    assert "rerank" not in planned.partition("configuration")[0]
    evaluated(path)
    usage = stage_world.results(path).table("usage").to_pylist()
    assert [(row["stage"], row["calls"]) for row in usage] == [("judge", 3)]


def test_a_score_that_is_no_number_ends_the_run(tmp_path: Path) -> None:
    table = TABLE.copy()
    table[WORDS.index("sky")] = np.nan
    write_cross_encoder(tmp_path / "pairs", table=table)
    outcome = rankbeam("evaluate", written(tmp_path, existing("one", rerank={"service": "pairs"})))
    assert outcome.status != 0
    assert "the model gives the score nan to the text" in " ".join(outcome.stderr.split())
    write_cross_encoder(tmp_path / "pairs", table=np.full_like(TABLE, np.nan))
    outcome = rankbeam("validate", written(tmp_path, existing("one", rerank={"service": "pairs"})))
    assert outcome.status == 2
    assert "the model gives the score nan" in " ".join(outcome.stderr.split())


@pytest.mark.parametrize(
    ("kind", "configuration", "more", "problem"),
    [
        (
            "vectors",
            {"rerank": {"service": "pairs"}},
            {},
            "rerank.service: 'pairs' embeds texts, but does not score them",
        ),
        (
            "pairs",
            {"retriever": {"type": "dense", "embedding_model": "pairs"}, "top_k": 3},
            {},
            "retriever.embedding_model: 'pairs' is a cross-encoder, which does not embed texts",
        ),
        ("pairs", {}, {"judge": {"service": "words", "embeddings": "pairs"}}, "judge.embeddings: 'pairs' is a cross"),
        ("pairs", {"generate": {"service": "pairs"}, "top_k": 3}, {}, "'pairs' scores texts and does not generate any"),
        ("pairs", {"rerank": {"service": "pairs", "thinking": 3}}, {}, "rerank.thinking: has no effect"),
        ("pooled", {"rerank": {"service": "pairs"}}, {}, "scores pairs of texts, so pooling: cls has no effect"),
        ("three", {"rerank": {"service": "pairs"}}, {}, "gives logits [1, 3] for a text"),
        (
            "hashed",
            {"rerank": {"service": "pairs"}},
            {},
            "rerank.service: 'pairs' embeds texts, but does not score them",
        ),
    ],
)
def test_a_model_in_another_role_is_refused_with_its_line(
    kind: str, configuration: dict[str, Any], more: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    if kind == "vectors":
        write_model(tmp_path / "pairs")
    else:
        write_cross_encoder(tmp_path / "pairs", heads=np.ones((6, 3), np.float32) if kind == "three" else HEADS)
    own = {"type": "hashed"} if kind == "hashed" else {"type": "onnx", "folder": "pairs"}
    services = {"pairs": {**own, **({"pooling": "cls"} if kind == "pooled" else {})}, "words": {"type": "lexical"}}
    path = written(tmp_path, {**existing("one"), **configuration}, services=services, **more)
    outcome = rankbeam("validate", path)
    assert outcome.status == 2
    printed = " ".join(outcome.stderr.split())
    assert problem in printed
    assert "experiment.yaml:" in printed


def test_goldens_refuse_a_cross_encoder_as_embedder(tmp_path: Path) -> None:
    write_cross_encoder(tmp_path / "pairs")
    services = {"pairs": {"type": "onnx", "folder": "pairs"}, "reader": {"type": "extractive"}}
    pool = {"documents": 6, "retrievers": [{"type": "dense", "embedding_model": "pairs"}]}
    outcome = rankbeam("goldens", goldens_file(tmp_path, services=services, reviews={"pool": pool}))
    assert outcome.status == 2
    assert "'pairs' is a cross-encoder, which does not embed texts" in " ".join(outcome.stderr.split())


def test_a_judge_cannot_embed_by_a_cross_encoder_directly(tmp_path: Path) -> None:
    model = Onnx(folder=str(write_cross_encoder(tmp_path / "pairs")))
    with pytest.raises(InputError, match="is a cross-encoder, which does not embed texts"):
        _ = model.session
    (scored,) = model.scored("apple", ["sky"])
    assert scored.score == pytest.approx(by_hand("apple", "sky"), abs=1e-6)
