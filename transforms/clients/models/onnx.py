"""The `onnx` models: embeddings and cross-encoders in ONNX's format, in this process, without services or downloads.

`onnx_files` finds the files, and `onnx_session` computes; only the latter imports the libraries of the extra.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from rankbeam.transforms.clients.extras import LOCAL, MISSING, missing_extra
from rankbeam.transforms.clients.models.base import PrefixedModel, embedded_text, prompts_of
from rankbeam.transforms.clients.models.onnx_files import ModelFiles, files_in, folder_named
from rankbeam.transforms.clients.models.replies import reply_of
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.calls.prompt import EMBED
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import CallError, FailureKind, InputError
from rankbeam.transforms.records.reply import NO_TOKENS, Reply, Tokens

if TYPE_CHECKING:
    from rankbeam.transforms.clients.models.onnx_session import CrossEncoder, OnnxSession, ScoredPair

_TEXTS_AT_ONCE = 64
LIBRARIES = ("onnxruntime", "tokenizers")


class Onnx(PrefixedModel):
    """An embedding model or a cross-encoder in ONNX's format, which runs in this process.

    A model whose output `logits` has one or two values for a text is a cross-encoder, which only `rerank:` can use.

    Attributes:
        model: name of the model: a folder in `RANKBEAM_MODELS` (by default `~/.cache/rankbeam/models`), or a model that
            is already in the cache of Hugging Face.
        folder: folder of the model and its `tokenizer.json`, instead of a name.
        file: path of the model in its folder, if the folder has several, such as `onnx/model_quantized.onnx`.
        pooling: vector of a text: the mean of its tokens' vectors, the first one (cls) or the last one. By default the
            model's own setting, else the mean. Not for cross-encoders.
        max_tokens: maximum number of tokens that the model sees of a text, or of a query and a text together (the
            longer one is cut); by default the model's own setting, else 512.
    """

    folder: Annotated[str, Field(min_length=1)] | None = None
    file: Annotated[str, Field(pattern=r"\.onnx$")] | None = None
    pooling: Literal["mean", "cls", "last"] | None = None
    max_tokens: Annotated[int, Field(ge=4, le=100_000)] | None = None

    embeds_only: ClassVar[bool] = True
    referring: ClassVar[frozenset[str]] = frozenset()  # it has no secrets
    default_quota: ClassVar[Quota] = Quota(requests_per_minute=6_000_000, concurrent_calls=2, timeout_s=600.0)

    @model_validator(mode="after")
    def _one_place(self) -> "Onnx":
        if (self.folder is None) == (not self.model):
            raise ValueError("give model, the name of a model on this machine, or folder, where its files are")
        for library in LIBRARIES:
            if problem := missing_extra(library, LOCAL, f"models of type onnx ({library})"):
                raise PydanticCustomError(MISSING, "{problem}", {"problem": problem})
        return self

    @property
    def is_free(self) -> bool:
        return True

    @property
    def own_files(self) -> ModelFiles:
        return files_in(self.folder or folder_named(self.model), self.file)

    @property
    def session(self) -> "OnnxSession":
        """The open model; raises an InputError for a cross-encoder, which does not embed texts."""
        from rankbeam.transforms.clients.models.onnx_session import OnnxSession

        if not isinstance(model := self._opened_model, OnnxSession):
            raise InputError(
                f"{self.scope()!r} is a cross-encoder, which does not embed texts; use it as rerank: {{service}}"
            )
        return model

    @property
    def scores_pairs(self) -> bool:
        from rankbeam.transforms.clients.models.onnx_session import CrossEncoder

        return isinstance(self._opened_model, CrossEncoder)

    def scored(self, query: str, texts: Sequence[str]) -> "list[ScoredPair]":
        encoder = cast("CrossEncoder", self._opened_model)
        return encoder.score_all([(self.query_prefix + query, self.document_prefix + text) for text in texts])

    @property
    def _opened_model(self) -> "OnnxSession | CrossEncoder":
        """The open model; each process opens it once."""
        from rankbeam.transforms.clients.models.onnx_session import open_model  # imports slow libraries

        return open_model(self.own_files, self.pooling, self.limit)

    @property
    def limit(self) -> int:
        """The most tokens of a text that the model sees."""
        return self.max_tokens or self.own_files.max_tokens

    def resolved(self, folder: str) -> "Onnx":
        """A copy with the model's folder on this machine; a relative path is relative to `folder`."""
        try:
            local_folder = folder_named(self.model) if self.folder is None else files.below(folder, self.folder)
        except InputError:  # `unset` reports it
            return self
        return self.model_copy(update={"folder": local_folder})

    def inputs(self) -> dict[str, str]:
        return {} if self.folder is None else {"folder": self.folder}

    def unset(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """The problem if the model is missing on this machine, or neither embeds texts nor scores pairs of texts."""
        try:
            _ = self._opened_model
        except InputError as error:
            yield ("model" if self.model else "folder",), str(error)

    def scope(self) -> str:
        return self.model or self.folder or ""

    def decisive(self) -> dict[str, Any]:
        """As for all models, but with the content of the files instead of their path."""
        return self._by_content(super().decisive())

    def identity(self, kind: str) -> dict[str, Any]:
        """Everything that affects a vector besides its text, with the content of the files instead of their path."""
        return self._by_content(super().identity(kind))

    def _by_content(self, values: Mapping[str, Any]) -> dict[str, Any]:
        model_files = self.own_files
        others = {name: value for name, value in values.items() if name not in ("model", "folder", "file")}
        pooling = self.pooling or model_files.pooling or "mean"
        return others | {"content": model_files.content, "pooling": pooling, "max_tokens": self.limit}

    async def connect(self) -> "OnnxConnection":
        return OnnxConnection(self, await asyncio.to_thread(lambda: self.session))

    def most_tokens(self, payload: str) -> Tokens:  # noqa: ARG002  the Protocol's
        return NO_TOKENS


@dataclass(frozen=True)
class OnnxConnection:
    """A connection that embeds in threads of this process, for judges and goldens."""

    model: Onnx
    session: "OnnxSession"
    texts_per_request: int = _TEXTS_AT_ONCE

    async def call(self, payload: str, timeout_s: float, attempt: int) -> Reply:  # noqa: ARG002  the Protocol's
        prompts = prompts_of(payload)
        other = next((prompt.step for prompt in prompts if prompt.step != EMBED), None)
        if other is not None:
            raise CallError(FailureKind.INVALID, f"onnx only embeds texts, and cannot do the step {other!r}")
        texts: Sequence[str] = [embedded_text(prompt) for prompt in prompts]
        embedded = await asyncio.to_thread(self.session.embed_all, texts)
        vectors = [tuple(map(float, one.vector)) for one in embedded]
        return reply_of(vectors, texts, NO_TOKENS, self.model.scope())

    async def close(self) -> None:
        """Leave the model open for the next bundle in this process."""
