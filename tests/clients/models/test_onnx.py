"""Models in ONNX's format: the vectors of the texts, whatever else is embedded; and folders that cannot be used."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support import memory_filesystem
from support.model_calls import replies
from support.onnx_models import E5, MINILM, TABLE, ids, real, write_model, write_tokenizer
from tokenizers import Tokenizer

from rankbeam.transforms.clients import extras
from rankbeam.transforms.clients.models import onnx as module
from rankbeam.transforms.clients.models.base import Role
from rankbeam.transforms.clients.models.embeddings import ComputedEmbeddings, Embed
from rankbeam.transforms.clients.models.families import missing_roles
from rankbeam.transforms.clients.models.onnx import Onnx
from rankbeam.transforms.clients.models.onnx_files import files_in, folder_named
from rankbeam.transforms.records.calls.prompt import Prompt
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError
from rankbeam.transforms.records.reply import Reply

TEXTS = ["red apple", "blue sky", "green apple word", "sky"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model."""
    return write_model(tmp_path_factory.mktemp("models") / "small")


def vectors(model: Onnx, texts: list[str], role: Role = Role.DOCUMENT) -> tuple[list[Any], list[str]]:
    cut: list[int] = []
    embed = Embed("m", "onnx", model)
    own = ComputedEmbeddings(embed) if role is Role.DOCUMENT else ComputedEmbeddings(embed).of_queries()
    computed = list(own.vectors(texts, cut))
    return computed, [own.cut_warning("documents or chunks", number, len(texts)) for number in cut if number]


@pytest.mark.parametrize("pooling", ["mean", "cls", "last", None])
def test_a_vector_is_what_pooling_makes_of_the_tokens(small: Path, pooling: Any) -> None:
    own, _ = vectors(Onnx(folder=str(small), pooling=pooling), TEXTS)
    for text, vector in zip(TEXTS, own, strict=True):
        rows = TABLE[ids(text)]
        expected = {"cls": rows[0], "last": rows[-1]}.get(pooling or "mean", rows.mean(axis=0))
        np.testing.assert_allclose(vector, expected, rtol=1e-6)


@given(texts=st.lists(st.sampled_from([*TEXTS, "", " ", "word " * 700]), max_size=12), limit=st.integers(4, 40))
def test_every_text_has_its_vector_and_blank_ones_none(small: Path, texts: list[str], limit: int) -> None:
    own, warnings = vectors(Onnx(folder=str(small), max_tokens=limit), texts)
    for text, vector in zip(texts, own, strict=True):
        if not text.strip():
            assert vector is None
            continue
        tokens = ids(text)
        tokens = tokens if len(tokens) <= limit else [*tokens[: limit - 1], 2]
        np.testing.assert_allclose(vector, TABLE[tokens].mean(axis=0), rtol=1e-5)
    cut = sum(len(ids(text)) > limit for text in texts)
    assert [warning.split(" documents")[0] for warning in warnings] == ([f"m: {cut} of {len(texts)}"] if cut else [])


def test_prefixes_belong_to_roles(small: Path) -> None:
    model = Onnx(folder=str(small), query_prefix="red ", document_prefix="blue ")
    for role, prefix in ((Role.QUERY, "red"), (Role.DOCUMENT, "blue")):
        ((vector,), _) = vectors(model, ["apple"], role)
        np.testing.assert_allclose(vector, TABLE[ids(f"{prefix} apple")].mean(axis=0), rtol=1e-6)
    embed = Embed("m", "onnx", model)
    same = Embed("m", "onnx", model.model_copy(update={"query_prefix": "green "}))
    assert ComputedEmbeddings(embed).identity == ComputedEmbeddings(same).identity
    assert ComputedEmbeddings(embed).of_queries().identity != ComputedEmbeddings(same).of_queries().identity


def identities(model: Onnx) -> tuple[str, str]:
    return json.dumps(model.decisive(), sort_keys=True), Embed("m", "onnx", model).call("red").key or ""


def test_a_model_is_known_by_its_content_not_by_its_place(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identities(Onnx(folder=str(small)))
    assert str(small) not in before[0]
    shutil.copytree(small, tmp_path / "some" / "other")
    (tmp_path / "some" / "other" / "README.md").write_text("About it.")
    monkeypatch.setenv("RANKBEAM_MODELS", str(tmp_path / "some"))
    assert identities(Onnx(folder=str(tmp_path / "some" / "other"))) == before
    assert identities(Onnx(model="other")) == before
    assert identities(Onnx(model="other", pooling="mean", max_tokens=512)) == before  # the defaults, spelled out
    assert identities(Onnx(model="other").resolved("/elsewhere")) == before
    for changed in ({"pooling": "cls"}, {"max_tokens": 9}):
        assert not set(identities(Onnx(model="other", **changed))) & set(before)
    write_tokenizer(tmp_path / "some" / "other", version="1.1")
    assert not set(identities(Onnx(model="other"))) & set(before)
    write_model(tmp_path / "some" / "other", table=TABLE * 2)
    assert not set(identities(Onnx(model="other"))) & set(before)


def test_names_are_looked_up_in_both_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKBEAM_MODELS", str(tmp_path / "own"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(
        InputError, match=r"no model 'team/tiny' in .*own/team/tiny, nor in the cache of Hugging Face. Put .*RANKBEAM_M"
    ):
        folder_named("team/tiny")
    snapshot = write_model(tmp_path / "hub" / "models--team--tiny" / "snapshots" / "a1", name="onnx/model.onnx")
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("a1\n")
    assert folder_named("team/tiny") == str(snapshot)
    own = write_model(tmp_path / "own" / "team" / "tiny")
    with pytest.raises(InputError, match="did you mean 'team'"):
        folder_named("taem")
    assert folder_named("team/tiny") == str(own)
    assert not list(Onnx(model="team/tiny").unset())


def test_a_folder_of_a_bucket_is_copied(small: Path) -> None:
    place = "mem://bucket/models/small"
    for path in small.iterdir():
        memory_filesystem.FILES[f"{place}/{path.name}"] = path.read_bytes()
    assert identities(Onnx(folder=place)) == identities(Onnx(folder=str(small)))
    np.testing.assert_array_equal(vectors(Onnx(folder=place), TEXTS)[0], vectors(Onnx(folder=str(small)), TEXTS)[0])


def settings(folder: Path, name: str, content: Any) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def test_settings_of_sentence_transformers_are_used(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    assert (files_in(str(folder)).pooling, files_in(str(folder)).max_tokens) == (None, 512)
    write_tokenizer(
        folder, truncation={"direction": "Right", "max_length": 20, "strategy": "LongestFirst", "stride": 0}
    )
    assert Onnx(folder=str(folder)).limit == 20
    settings(folder, "tokenizer_config.json", {"model_max_length": 1e30})
    assert Onnx(folder=str(folder)).limit == 20
    settings(folder, "tokenizer_config.json", {"model_max_length": 30})
    settings(folder, "1_Pooling/config.json", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    assert (Onnx(folder=str(folder)).decisive()["pooling"], Onnx(folder=str(folder)).limit) == ("cls", 30)
    settings(folder, "sentence_bert_config.json", {"max_seq_length": 40})
    assert Onnx(folder=str(folder)).limit == 40
    assert Onnx(folder=str(folder), max_tokens=7).limit == 7
    ((vector,), _) = vectors(Onnx(folder=str(folder)), ["red"])
    np.testing.assert_allclose(vector, TABLE[1], rtol=1e-6)
    settings(folder, "1_Pooling/config.json", {"pooling_mode_max_tokens": True})
    assert "pooling_mode_max_tokens cannot be computed" in problem(folder)
    assert "no use" not in problem(folder, pooling="mean")


def problem(folder: Path, **more: Any) -> str:
    """The problem of a service, as `validate` reports it; "" for none."""
    return "; ".join(text for _, text in Onnx(folder=str(folder), **more).unset())


def test_folders_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    assert "is not a folder" in problem(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    assert "has no model: no file *.onnx" in problem(tmp_path / "empty")
    folder = write_model(tmp_path / "model")
    assert problem(folder) == ""
    assert "has no model 'modle.onnx'; did you mean 'model.onnx'" in problem(folder, file="modle.onnx")
    (folder / "tokenizer.json").rename(folder / "tokens.json")
    assert "has no tokenizer.json" in problem(folder)
    for content in ("", "{}", "[1]", '{"model": 3}'):
        (folder / "tokenizer.json").write_text(content)
        assert "tokenizer.json: " in problem(folder), content
    write_tokenizer(folder)
    (folder / "model.onnx").write_bytes(b"no model")
    assert "cannot be opened as a model" in problem(folder)
    several = write_model(write_model(tmp_path / "several", name="a.onnx"), name="b.onnx")
    assert "has several models; name one: file: a.onnx or b.onnx" in problem(several)
    assert problem(several, file="b.onnx") == ""
    settings(folder, "sentence_bert_config.json", "{")
    assert "sentence_bert_config.json: is not JSON" in problem(folder)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"inputs": ("features",)}, "takes the inputs features; a model that embeds texts takes input_ids"),
        ({"inputs": ("input_ids", "past_keys")}, "takes the inputs input_ids, past_keys"),
        ({"output": "logits"}, "gives logits [1, 6] for a text of 512 tokens, and no vector"),
        ({"most": 100}, "cannot embed a text of 512 tokens; lower max_tokens"),
        ({"size": 128}, "cannot embed a text of 512 tokens; lower max_tokens"),
        ({"table": TABLE[:, :0]}, "no vector"),
    ],
)
def test_models_that_embed_no_texts_say_why(model: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert message in problem(write_model(tmp_path / "model", **model))


def test_a_model_may_pool_by_itself(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", output="sentence_embedding")
    ((vector,), _) = vectors(Onnx(folder=str(folder)), ["red"])
    np.testing.assert_allclose(vector, TABLE[4], rtol=1e-6)
    assert "pooling: cls has no effect; remove it" in problem(folder, pooling="cls")


def test_layers_that_the_model_lacks_are_refused(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model")
    known = [{"type": f"sentence_transformers.models.{name}"} for name in ("Transformer", "Pooling", "Normalize")]
    settings(folder, "modules.json", known)
    assert problem(folder) == ""
    settings(folder, "modules.json", [*known, {"type": "sentence_transformers.models.Dense"}])
    assert "lacks the layers that modules.json adds (Dense)" in problem(folder)


@pytest.mark.parametrize(("value", "what"), [(np.nan, "not finite numbers"), (np.inf, "not finite"), (0.0, "of zeros")])
def test_vectors_without_a_direction_end_the_run(value: float, what: str, tmp_path: Path) -> None:
    table = TABLE.copy()
    table[[1, 2, 8]] = value if value == 0 else table[[1, 2, 8]]
    table[8] = value
    model = Onnx(folder=str(write_model(tmp_path / "model", table=table)))
    assert not list(model.unset())
    assert vectors(model, ["red"])[0][0] is not None
    with pytest.raises(InputError, match=f"gives a vector .*{what}.* for the text 'sky'"):
        vectors(model, ["red", "sky"])


def test_without_the_extra_the_service_is_refused(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIBRARIES", ("no_such_library",))
    assert extras.LOCAL in extras.EXTRAS
    with pytest.raises(ValidationError, match=r"pip install 'rankbeam\[local\]'"):
        Onnx(folder=str(small))


@pytest.mark.parametrize("more", [{}, {"model": "a", "folder": "b"}])
def test_one_place_is_named(more: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="give model, the name of a model on this machine, or folder"):
        Onnx(**more)


def test_a_connection_answers_as_the_retriever_computes(small: Path) -> None:
    model = Onnx(folder=str(small))
    prompts = [model.embedding(text, Role.SIMILARITY) for text in TEXTS]
    own, _ = vectors(model, TEXTS)
    for reply, vector in zip(replies(model, prompts), own, strict=True):
        assert isinstance(reply, Reply)
        np.testing.assert_array_equal(np.float32(model.read(reply.answer).vector), vector)  # type: ignore[union-attr]
    (refused,) = replies(model, [Prompt("answer", {"query": "q"})])
    assert isinstance(refused, CallError)
    assert refused.kind is FailureKind.INVALID
    assert model.is_free


def plainly(folder: Path, texts: list[str], limit: int) -> np.ndarray:
    """The vectors of texts, one after the other, by the two libraries and NumPy."""
    (model,), (file,) = folder.glob("*.onnx"), folder.glob("*tokenizer.json")
    session, tokenizer, rows = onnxruntime.InferenceSession(str(model)), Tokenizer.from_file(str(file)), []
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    for text in texts:
        encoding = tokenizer.encode(text)
        mask = encoding.attention_mask
        feeds = {"input_ids": encoding.ids, "attention_mask": mask, "token_type_ids": encoding.type_ids}
        (hidden,) = session.run(None, {name: np.array([value], np.int64) for name, value in feeds.items()})
        rows.append((hidden[0] * np.array(mask)[:, None]).sum(axis=0) / sum(mask))
    return np.array(rows)


SENTENCES = [
    "A man is eating food.", "A man is eating a piece of bread.", "The girl is carrying a baby.",
    "A monkey is playing drums.", "Someone in a gorilla costume is playing a set of drums.", "word " * 400,
]  # fmt: skip


def cosines(rows: np.ndarray) -> np.ndarray:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)


@pytest.mark.parametrize("name", [MINILM, E5])
def test_vectors_of_real_models_equal_those_of_plain_code(name: str) -> None:
    folder = real(name)
    own, warnings = vectors(Onnx(model=name, max_tokens=256), SENTENCES)
    np.testing.assert_allclose(own, plainly(folder, SENTENCES, 256), rtol=0, atol=2e-6)
    assert len(warnings) == 1
    alone = [vectors(Onnx(model=name, max_tokens=256), [text])[0][0] for text in SENTENCES]
    np.testing.assert_array_equal(own, alone)  # whatever else is embedded


def test_similarities_of_minilm_are_those_that_are_known() -> None:
    real(MINILM)
    own, _ = vectors(Onnx(model=MINILM), SENTENCES)
    similarity = cosines(np.array(own))
    # Sentence Transformers' own example of all-MiniLM-L6-v2, without quantization: 0.7553, 0.6433.
    assert similarity[0, 1] == pytest.approx(0.755, abs=0.03)
    assert similarity[3, 4] == pytest.approx(0.643, abs=0.03)
    assert max(similarity[0, 2:5]) < 0.3


def test_a_known_family_asks_for_its_prefixes() -> None:
    real(E5)
    (warning,) = missing_roles(Onnx(model=E5).resolved(""))
    assert 'query_prefix: "query: "' in warning
    (by_folder,) = missing_roles(Onnx(folder=str(real(E5))))
    assert 'document_prefix: "passage: "' in by_folder
    assert missing_roles(Onnx(model=E5, query_prefix="query: ", document_prefix="passage: ")) == []
