"""The `chunks` corpus: the documents of the dataset, cut on this machine, for retrievers that answer in process."""

from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from rankbeam.transforms.clients.corpora.base import CorpusParameters
from rankbeam.transforms.clients.corpora.model_tokens import ModelTokens
from rankbeam.transforms.clients.extras import LOCAL, missing
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.kernels.chunks import By
from rankbeam.transforms.records.chunking import Chunker, Chunking


class Chunks(CorpusParameters):
    """Chunks of the text of documents; a title belongs to no chunk.

    Attributes:
        by: unit of size and overlap: "words", "tokens" (four characters each) or "characters". With "sentences",
            "paragraphs" or "headings" (Markdown sections), whole units are packed into chunks of up to `chunk_size`
            words; a longer unit becomes a chunk of its own. With "recursive", sizes are tokens, and a chunk ends with
            the largest unit that fits: paragraph, line, sentence, word or character.
        longer: "split" cuts sentences, paragraphs and headings with more than `chunk_size` words, at the boundaries of
            smaller units; no effect on other values of `by`.
        intact: if true, no chunk cuts a table or a block of code of Markdown that fits into a chunk; of those that do
            not fit, lines are kept.
        tokenizer: with `by: tokens`, file `tokenizer.json` of a model from Hugging Face: sizes are its tokens, without
            special ones, instead of four characters each. Needs `pip install 'rankbeam[local]'`. The file's name is
            part of a configuration's identity, its content of the index.
    """

    by: By = "words"
    longer: Literal["keep", "split"] = "keep"
    intact: bool = False
    tokenizer: Annotated[str, Field(min_length=1)] | None = None

    added: ClassVar[frozenset[str]] = frozenset({"longer", "intact", "tokenizer"})

    @model_validator(mode="after")
    def _tokenizer_of_tokens(self) -> "Chunks":
        if self.tokenizer is not None:
            if self.by != "tokens":
                raise ValueError(f"tokenizer counts tokens, but by is {self.by}; write by: tokens")
            if self.intact:
                raise ValueError(
                    "intact cannot be combined with a tokenizer, which keeps graphemes anyway; remove one of the two"
                )
            if (problem := missing("tokenizers", LOCAL, "tokenizers")) is not None:
                raise ValueError(problem)
        return self

    def resolved(self, folder: str) -> "Chunks":
        """As `Parameters`."""
        path = self.tokenizer
        return self if path is None else self.model_copy(update={"tokenizer": files.below(folder, path)})

    def specification(self) -> dict[str, Any]:
        """As `CorpusParameters`; a tokenizer is the same in any folder."""
        values = super().specification()
        return values if self.tokenizer is None else {**values, "tokenizer": PurePosixPath(self.tokenizer).name}

    @property
    def chunking(self) -> Chunker:
        """The chunker of documents."""
        if self.tokenizer is not None:
            return ModelTokens(self.tokenizer, self.chunk_size, self.chunk_overlap)
        return Chunking(self.by, self.chunk_size, self.chunk_overlap, self.longer, self.intact)

    def described(self) -> str:
        """For people, in a few words."""
        return str(self.chunking)
