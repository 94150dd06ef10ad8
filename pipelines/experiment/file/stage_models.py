"""The schema of `rerank:` where a model reranks: `{service: NAME}`; other rerankers have a type."""

from typing import Annotated

from pydantic import ConfigDict, Field

from rankbeam.pipelines.experiment.file.keys import MOST, Count, Word
from rankbeam.transforms.clients.parameters import Parameters
from rankbeam.transforms.clients.retrievers.rerankers.base import Depth
from rankbeam.transforms.records.reranking import DEFAULT_DEPTH


class ModelRerankParameters(Parameters):
    """A model under `services:` that rates each document from 0 to 10.

    Attributes:
        service: name of the model under `services:`.
        depth: number of results that the retriever is asked for, and that are rated.
        max_output_tokens: maximum tokens in one reply.
        thinking: thinking-token budget; by default the model decides.
    """

    model_config = ConfigDict(strict=True)  # as all other keys of an experiment

    service: Word
    depth: Depth = DEFAULT_DEPTH
    max_output_tokens: Count = 256
    thinking: Annotated[int, Field(ge=0, le=MOST)] | None = None
