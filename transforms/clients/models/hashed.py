"""The `hashed` embeddings: counts of word stems, hashed to a few dimensions. No language model."""

import hashlib
from typing import Annotated, ClassVar

from pydantic import Field

from rankbeam.transforms.clients.models.base import STOP, Stored, embedded_text
from rankbeam.transforms.clients.models.local import LocalModel, stems
from rankbeam.transforms.records.calls.prompt import EMBED, Prompt
from rankbeam.transforms.records.errors import CallError
from rankbeam.transforms.records.failures import FailureKind


class Hashed(LocalModel):
    """Feature hashing with signs (Weinberger et al., ICML 2009) over the set of stems.

    Attributes:
        dimensions: embedding dimensions.
    """

    dimensions: Annotated[int, Field(ge=2, le=4096)] = 256

    embeds_only: ClassVar[bool] = True
    offline: ClassVar[str | None] = "hashed words, no language model"

    def answer(self, prompt: Prompt) -> Stored:
        """The embedding of the value `text`.

        >>> Hashed(dimensions=2).answer(Prompt("embed", {"text": "owners pay"})).vector
        (0.0, 0.0)
        """
        if prompt.step != EMBED:
            raise CallError(FailureKind.INVALID, f"hashed only embeds texts, and cannot do the step {prompt.step!r}")
        vector = [0.0] * self.dimensions
        for stem in stems(embedded_text(prompt), self.language):
            digest = hashlib.blake2b(stem.encode(), digest_size=8).digest()
            place = int.from_bytes(digest[:7], "big") % self.dimensions
            vector[place] += 1.0 if digest[7] & 1 else -1.0
        return Stored(None, STOP, None, self.model, tuple(vector))
