"""The `chunks` corpus: the documents of the dataset, cut on this machine, for retrievers that answer in process."""

from typing import ClassVar, Literal

from rankbeam.transforms.clients.corpora.base import CorpusParameters
from rankbeam.transforms.kernels.chunks import By
from rankbeam.transforms.records.chunking import Chunking


class Chunks(CorpusParameters):
    """Chunks of the text of documents; a title belongs to no chunk.

    Attributes:
        by: unit of size and overlap: "words", "tokens" (four characters each) or "characters". With "sentences",
            "paragraphs" or "headings" (Markdown sections), whole units are packed into chunks of up to `chunk_size`
            words; a longer unit becomes a chunk of its own. With "recursive", sizes are tokens, and a chunk ends at the
            highest boundary that fits: of a paragraph, a line, a sentence, a word or a character.
        longer: "split" cuts sentences, paragraphs and headings with more than `chunk_size` words, at the boundaries of
            smaller units; no effect on other values of `by`.
    """

    by: By = "words"
    longer: Literal["keep", "split"] = "keep"

    added: ClassVar[frozenset[str]] = frozenset({"longer"})

    @property
    def chunking(self) -> Chunking:
        """The chunker of documents."""
        return Chunking(self.by, self.chunk_size, self.chunk_overlap, self.longer)

    def described(self) -> str:
        """For people, in a few words."""
        return str(self.chunking)
