"""Chunks of a model's own tokens, counted again by the library; the tokenizers are trained here."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.campaigns import examples, in_campaigns
from support.cli import rankbeam
from support.data import REPOSITORY

from rankbeam.transforms.clients.corpora.chunks import Chunks, ModelTokens
from rankbeam.transforms.records.errors import InputError

tokenizers = pytest.importorskip("tokenizers")

SAMPLE = [
    "One two three, four five six. Refunds take fourteen days!",
    "naïve café 日本語 \U0001f469\u200d\U0001f467 words",
] * 20
TEXTS = st.lists(
    st.sampled_from(
        ["Refunds", "take", "fourteen", "day", "x" * 40, "日本語", "\U0001f469\u200d\U0001f467", "naïve", "!", "-"]
    )
    | st.text(max_size=5),
    max_size=25,
).map(" ".join)
SIZES = st.integers(24, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


def trained(kind: str) -> Any:
    models, trainers, pre = tokenizers.models, tokenizers.trainers, tokenizers.pre_tokenizers
    if kind == "bytes":
        tokenizer = tokenizers.Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=320, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False)
    elif kind == "pieces":
        tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106  no password
        tokenizer.pre_tokenizer = pre.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]"], show_progress=False)
    else:
        tokenizer = tokenizers.Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre.Metaspace()
        options = {"vocab_size": 120, "special_tokens": ["<unk>"], "unk_token": "<unk>", "show_progress": False}
        trainer = trainers.UnigramTrainer(**options)
    tokenizer.train_from_iterator(SAMPLE, trainer)
    return tokenizer


@pytest.fixture(scope="module", params=["bytes", "pieces", "unigram"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    tokenizer = trained(request.param)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    values = json.loads(path.read_text(encoding="utf-8"))
    truncation = {"direction": "Right", "max_length": 8, "strategy": "LongestFirst", "stride": 0}  # as many models have
    path.write_text(json.dumps({**values, "truncation": truncation}), encoding="utf-8")
    return path, tokenizer


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, sizes=SIZES)
def test_no_chunk_has_more_tokens_and_every_word_is_in_one(
    saved: tuple[Path, Any], text: str, sizes: tuple[int, int]
) -> None:
    path, tokenizer = saved
    spans = ModelTokens(str(path), *sizes).spans(text)
    for start, end in spans:
        assert len(tokenizer.encode(text[start:end], add_special_tokens=False).ids) <= sizes[0]
    covered = {position for start, end in spans for position in range(start, end)}
    assert covered >= {position for position, character in enumerate(text) if not character.isspace()}
    assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(spans))


def test_a_long_text_is_not_truncated_and_chunks_are_nearly_full(saved: tuple[Path, Any]) -> None:
    path, _ = saved
    chunker = ModelTokens(str(path), 64, 0)
    text = " ".join(SAMPLE)
    counts = [chunker.count(text[start:end]) for start, end in chunker.spans(text)]
    assert chunker.spans(text)[-1][1] == len(text)
    assert min(counts[:-1]) > 40


def test_the_content_of_the_file_identifies_an_index_and_its_name_a_configuration(saved: tuple[Path, Any]) -> None:
    path, _ = saved
    first = ModelTokens(str(path), 8, 0).identity
    other = path.with_name("other.json")
    other.write_text(path.read_text(encoding="utf-8").replace('"max_length": 8', '"max_length": 9'), encoding="utf-8")
    assert ModelTokens(str(other), 8, 0).identity != first
    parameters = Chunks(by="tokens", tokenizer="models/tokenizer.json").resolved("/data")
    assert parameters.tokenizer == "/data/models/tokenizer.json"
    assert parameters.specification()["tokenizer"] == "tokenizer.json"
    assert "tokenizer" not in Chunks(by="tokens").specification()


def test_other_files_and_other_units_are_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"wrong\.json: is not a tokenizer\.json of Hugging Face"):
        ModelTokens(str(tmp_path / "wrong.json"), 8, 0).spans("a")
    with pytest.raises(ValueError, match="tokenizer counts tokens, but by is words; write by: tokens"):
        Chunks(tokenizer="a.json")
    with pytest.raises(ValueError, match="intact cannot be combined with a tokenizer"):
        Chunks(by="tokens", intact=True, tokenizer="a.json")


@pytest.mark.long
@pytest.mark.parametrize("saved", ["bytes", *in_campaigns("pieces", "unigram")], indirect=True)
def test_a_tokenizer_runs_from_the_command_line(saved: tuple[Path, Any], tmp_path: Path) -> None:
    path, _ = saved
    demo = REPOSITORY / "examples" / "helpdesk"
    text = f"""
name: tokens
dataset: {{queries: {demo}/queries.jsonl, qrels: {demo}/qrels/test.tsv, corpus: {demo}/corpus.jsonl}}
corpora: {{kb: {{type: chunks, by: tokens, tokenizer: {path}, chunk_size: 64}}}}
configurations: [{{name: bm25, retriever: {{type: bm25, corpus: kb}}}}]
metrics: [nDCG@10]
output: {{path: out}}
"""
    (tmp_path / "e.yaml").write_text(text, encoding="utf-8")
    done = rankbeam("evaluate", str(tmp_path / "e.yaml"))
    assert done.status == 0, done.stderr
    assert f"at most 64 tokens of {path}" in rankbeam("plan", str(tmp_path / "e.yaml")).stdout
    missing = text.replace(str(path), "nowhere.json")
    (tmp_path / "e.yaml").write_text(missing, encoding="utf-8")
    refused = rankbeam("evaluate", str(tmp_path / "e.yaml"))
    assert refused.status == 2
    assert "nowhere.json" in refused.stderr
