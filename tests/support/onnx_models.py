"""Models in ONNX's format: small ones that tests build, and real ones that `make models` fetches."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from rankbeam.transforms.clients.models.onnx_files import folders_of

WORDS = ("[UNK]", "[CLS]", "[SEP]", "word", "red", "green", "blue", "apple", "sky")
TABLE = np.random.default_rng(5).standard_normal((len(WORDS), 6)).astype(np.float32)
MINILM, E5 = "all-minilm-l6-v2-q", "e5-small-v2-q"


def real(name: str) -> Path:
    """The folder of a real model; the test is skipped where it is missing."""
    folder = next(iter(folders_of(name)))
    if not Path(folder).is_dir():
        pytest.skip(f"the model {name} is not at {folder}; run make models, which needs Maven")
    return Path(folder)


def write_model(
    folder: Path,
    *,
    table: np.ndarray = TABLE,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    name: str = "model.onnx",
    output: str = "last_hidden_state",
    most: int | None = None,
    size: int | str = "sequence",
) -> Path:
    """A folder with a model that looks up the vector of each token, and its tokenizer of words.

    Args:
        folder: the folder, which is made.
        table: float[t, d], the vectors of the tokens.
        inputs: its inputs; all but the first are not looked at.
        name: path of the model in the folder.
        output: name of its output; "sentence_embedding" and "logits" are the vector of the second token.
        most: the number of tokens that it takes, as a model with a table of positions; None for any number.
        size: tokens of a text.
    """
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    steps = [("Gather", ["table", inputs[0]], "tokens", {})]
    if output != "last_hidden_state":
        steps.append(("Gather", ["tokens", "second"], "chosen", {"axis": 1}))
    if most is not None:  # a table of positions: other numbers of tokens cannot be added to it
        steps.append(("Add", ["tokens", "positions"], "chosen", {}))
    steps.append(("Identity", [steps[-1][2]], output, {}))
    weights = {"table": table, "second": np.array(1), "positions": np.zeros((1, most or 1, table.shape[1]), np.float32)}
    graph = helper.make_graph(
        [helper.make_node(kind, sources, [target], **more) for kind, sources, target, more in steps],
        "lookup",
        [helper.make_tensor_value_info(one, TensorProto.INT64, ["batch", size]) for one in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, key) for key, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    write_tokenizer(folder)
    return folder


HEADS = np.random.default_rng(9).standard_normal((6, 2)).astype(np.float32)


def write_cross_encoder(folder: Path, *, heads: np.ndarray = HEADS[:, :1], table: np.ndarray = TABLE) -> Path:
    """A folder with a model whose logits are those of the product of the summed vectors of query and text.

    Args:
        folder: the folder, which is made.
        heads: float[d, n], the weights of each of the n logits.
        table: float[t, d], the vectors of the tokens.
    """
    folder.mkdir(parents=True, exist_ok=True)
    steps = [
        ("Gather", ["table", "input_ids"], "tokens", {}),
        ("Cast", ["token_type_ids"], "types", {"to": TensorProto.FLOAT}),
        ("Unsqueeze", ["types", "last"], "of_text", {}),
        ("Sub", ["one", "of_text"], "of_query", {}),
        ("Mul", ["tokens", "of_text"], "texts", {}),
        ("Mul", ["tokens", "of_query"], "queries", {}),
        ("ReduceSum", ["texts", "middle"], "text", {"keepdims": 0}),
        ("ReduceSum", ["queries", "middle"], "query", {"keepdims": 0}),
        ("Mul", ["query", "text"], "product", {}),
        ("MatMul", ["product", "heads"], "logits", {}),
    ]
    weights = {
        "table": table, "heads": heads, "one": np.float32([1]), "last": np.array([2]), "middle": np.array([1])
    }  # fmt: skip
    graph = helper.make_graph(
        [helper.make_node(kind, sources, [target], **more) for kind, sources, target, more in steps],
        "pairs",
        [
            helper.make_tensor_value_info(one, TensorProto.INT64, ["batch", "sequence"])
            for one in ("input_ids", "attention_mask", "token_type_ids")
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", heads.shape[1]])],
        [numpy_helper.from_array(value, key) for key, value in weights.items()],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(folder / "model.onnx")
    )
    write_tokenizer(folder)
    return folder


def write_tokenizer(folder: Path, **settings: Any) -> None:
    """Write a tokenizer of words; settings replace parts of its file."""
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token=WORDS[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    around = [("[CLS]", 1), ("[SEP]", 2)]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=around
    )
    content = json.loads(tokenizer.to_str()) | settings
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")


def ids(text: str) -> list[int]:
    """The tokens of a text, by the words of the tokenizer."""
    return [1, *(WORDS.index(word) if word in WORDS else 0 for word in text.split()), 2]
