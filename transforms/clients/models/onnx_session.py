"""A model in ONNX's format in this process: from texts to vectors, or from pairs of texts to scores.

Every text is embedded alone, with several threads at once. A batch takes longer on CPUs, since its texts are padded to
the longest one; and in a model with dynamic quantization, a vector depends on the other texts in its batch.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as states
from tokenizers import Encoding, Tokenizer

from rankbeam.transforms.clients.models.onnx_files import ModelFiles
from rankbeam.transforms.records.errors import InputError

Vector = npt.NDArray[np.float32]
Source = TypeVar("Source")
Result = TypeVar("Result")

_ERRORS = tuple(kind for kind in vars(states).values() if isinstance(kind, type) and issubclass(kind, Exception))
_INPUTS: Mapping[str, Callable[[Encoding], Sequence[int]]] = {
    "input_ids": lambda encoding: encoding.ids,
    "attention_mask": lambda encoding: encoding.attention_mask,
    "token_type_ids": lambda encoding: encoding.type_ids,
    "position_ids": lambda encoding: range(len(encoding.ids)),
}
_WHOLE = "sentence_embedding"
_CLASSES = "logits"
_SCORES = ((1, 1), (1, 2))  # shapes of the logits of a pair
_MOST_TRIED = 1024  # tokens; attention over more tokens may need gigabytes
_SHOWN = 60


class EmbeddedText(NamedTuple):
    """The vector of a text."""

    vector: Vector
    is_cut: bool  # the text has more tokens than the model takes


@dataclass(frozen=True, eq=False)
class OnnxSession:
    """An open model."""

    session: onnxruntime.InferenceSession
    tokenizer: Tokenizer
    output: str
    pooling: str

    def embed_all(self, texts: Sequence[str]) -> list[EmbeddedText]:
        """The vectors of texts, none of which is blank."""
        return _in_threads(self.embed, texts)

    def embed(self, text: str) -> EmbeddedText:
        encoding = self.tokenizer.encode(text)
        try:
            (output,) = self.session.run([self.output], _feeds(self.session, encoding))
        except _ERRORS as error:
            raise InputError(f"the model cannot embed {text[:_SHOWN]!r}: {_first_line(error)}") from error
        vector = output[0] if output.ndim == 2 else _pool_vectors(output[0], self.pooling)
        if not np.isfinite(vector).all() or not vector.any():
            defect = "of zeros" if np.isfinite(vector).all() else "with components that are not finite numbers"
            raise InputError(f"the model gives a vector {defect} for the text {text[:_SHOWN]!r}; use another model")
        return EmbeddedText(vector.astype(np.float32), bool(encoding.overflowing))


class ScoredPair(NamedTuple):
    """The score of a text for a query."""

    score: float
    is_cut: bool  # query and text have more tokens than the model takes


@dataclass(frozen=True, eq=False)
class CrossEncoder:
    """An open model that reads a query and a text together."""

    session: onnxruntime.InferenceSession
    tokenizer: Tokenizer

    def score_all(self, pairs: Sequence[tuple[str, str]]) -> list[ScoredPair]:
        return _in_threads(self.score, pairs)

    def score(self, pair: tuple[str, str]) -> ScoredPair:
        """The score of a text for a query: the logit or, with two classes, the second one minus the first."""
        encoding = self.tokenizer.encode(*pair)
        try:
            (output,) = self.session.run([_CLASSES], _feeds(self.session, encoding))
        except _ERRORS as error:
            raise InputError(f"the model cannot score {pair[1][:_SHOWN]!r}: {_first_line(error)}") from error
        logits = output[0].astype(np.float64)
        score = float(logits[-1] if len(logits) == 1 else logits[1] - logits[0])
        if not np.isfinite(score):
            problem = f"the model gives the score {score} to the text {pair[1][:_SHOWN]!r}"
            raise InputError(f"{problem} for the query {pair[0][:_SHOWN]!r}; use another model")
        return ScoredPair(score, bool(encoding.overflowing))


def _in_threads(function: Callable[[Source], Result], sources: Sequence[Source]) -> list[Result]:
    if len(sources) < 2:
        return [function(source) for source in sources]
    with ThreadPoolExecutor(min(len(sources), _processors())) as pool:
        return list(pool.map(function, sources))


@lru_cache(2)
def open_model(model: ModelFiles, pooling: str | None, max_tokens: int) -> OnnxSession | CrossEncoder:
    """Open a model and try it with a text of `max_tokens`; pooling defaults to the settings', else the mean."""
    tokenizer, session = _tokenizer(model, max_tokens), _session(model)
    encoding = tokenizer.encode("word " * min(max_tokens, _MOST_TRIED))
    try:
        names = [output.name for output in session.get_outputs()]
        outputs = dict(zip(names, session.run(None, _feeds(session, encoding)), strict=True))
    except _ERRORS as error:
        problem = f"cannot embed a text of {len(encoding.ids):,} tokens; lower max_tokens: {_first_line(error)}"
        raise InputError(problem, path=str(model.model)) from error
    if _CLASSES in outputs and np.shape(outputs[_CLASSES]) in _SCORES and _WHOLE not in outputs:
        return _cross_encoder(model, session, tokenizer, pooling)
    name = _output(model, outputs, len(encoding.ids), pooling)
    return OnnxSession(session, tokenizer, name, pooling or model.pooling or "mean")


def _cross_encoder(
    model: ModelFiles, session: onnxruntime.InferenceSession, tokenizer: Tokenizer, pooling: str | None
) -> CrossEncoder:
    """The model, after it has scored a pair as a test."""
    if pooling is not None:
        raise InputError(
            f"scores pairs of texts, so pooling: {pooling} has no effect; remove it", path=str(model.model)
        )
    encoder = CrossEncoder(session, tokenizer)
    try:
        encoder.score(("word", "word"))
    except InputError as error:
        raise InputError(error.problem, path=str(model.model)) from error
    return encoder


def _tokenizer(model: ModelFiles, max_tokens: int) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_buffer(model.tokenizer.read_bytes())
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_tokens)
    except ValueError as error:
        raise InputError(f"cannot be used as a tokenizer: {_first_line(error)}", path=str(model.tokenizer)) from error
    return tokenizer


def _session(model: ModelFiles) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # each thread embeds one text
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(model.model), options, providers=["CPUExecutionProvider"])
    except _ERRORS as error:
        raise InputError(f"cannot be opened as a model: {_first_line(error)}", path=str(model.model)) from error
    names = [tensor.name for tensor in session.get_inputs()]
    if "input_ids" not in names or not {*names} <= {*_INPUTS}:
        problem = (
            f"takes the inputs {', '.join(names) or 'none'}; a model that embeds texts takes input_ids, and may take"
        )
        raise InputError(f"{problem} {', '.join(list(_INPUTS)[1:])}", path=str(model.model))
    return session


def _output(model: ModelFiles, outputs: Mapping[str, Any], tokens: int, pooling: str | None) -> str:
    """The name of the output with the vector of a text, or with the vectors of its tokens."""
    shapes = {name: np.shape(value) for name, value in outputs.items()}
    whole = [name for name, shape in shapes.items() if len(shape) == 2 and shape[0] == 1 and shape[1] > 1]
    by_token = [name for name, shape in shapes.items() if len(shape) == 3 and shape[:2] == (1, tokens) and shape[2]]
    if _WHOLE in whole or (not by_token and whole and whole[0] != _CLASSES):
        if pooling is not None:
            problem = f"gives one vector for each text ({_WHOLE}), so pooling: {pooling} has no effect; remove it"
            raise InputError(problem, path=str(model.model))
        return _WHOLE if _WHOLE in whole else whole[0]
    if not by_token:
        shown = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
        problem = f"gives {shown} for a text of {tokens:,} tokens, and no vector of the text or of its tokens"
        raise InputError(f"{problem}; name a model that embeds texts", path=str(model.model))
    if model.further_layers:
        layers = ", ".join(model.further_layers)
        problem = f"lacks the layers that modules.json adds ({layers}), so its vectors would differ"
        raise InputError(f"{problem}; export them, too, with the output {_WHOLE}", path=str(model.model))
    return by_token[0]


def _feeds(session: onnxruntime.InferenceSession, encoding: Encoding) -> dict[str, Any]:
    """The model's inputs for one text, with the types that it takes."""
    return {
        tensor.name: np.array([_INPUTS[tensor.name](encoding)], np.int32 if "int32" in tensor.type else np.int64)
        for tensor in session.get_inputs()
    }


def _pool_vectors(hidden: npt.NDArray[np.floating], pooling: str) -> npt.NDArray[np.floating]:
    """Pool the vectors of all tokens into one.

    >>> hidden = np.float32([[1, 2], [3, 4], [5, 9]])
    >>> [_pool_vectors(hidden, pooling).tolist() for pooling in ("mean", "cls", "last")]
    [[3.0, 5.0], [1.0, 2.0], [5.0, 9.0]]
    """
    if pooling == "mean":
        mean: npt.NDArray[np.floating] = hidden.mean(axis=0, dtype=np.float64)
        return mean
    vector: npt.NDArray[np.floating] = hidden[0 if pooling == "cls" else -1]
    return vector


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]
