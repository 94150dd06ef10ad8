"""The schema of a file of goldens: its keys, their types and their defaults."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from rankbeam.pipelines.config.sections import MOST, Count, Positive, Section, Word
from rankbeam.transforms.clients.bigquery.locations import Location
from rankbeam.transforms.clients.formats.documents.files import EVERYTHING
from rankbeam.transforms.clients.google.channels import Endpoint
from rankbeam.transforms.clients.models.local import Language
from rankbeam.transforms.clients.retrievers.document_ids import DocumentIds
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.goldens.documents import Sample
from rankbeam.transforms.goldens.origins import DataStore, Origin, RagFiles, SourceFiles
from rankbeam.transforms.goldens.records.items import TYPES
from rankbeam.transforms.records.errors import did_you_mean

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]


class RagEngineModel(Section):
    """`documents: {rag_engine: …}`, the name of a corpus, or a mapping.

    Attributes:
        corpus: its full name.
        doc_id: the rule by which the name of a file becomes an id, as for the `rag_engine` retriever.
        api_endpoint: address of the service; by default the public one of the location.
    """

    bare: ClassVar[tuple[str, type] | None] = ("corpus", str)

    corpus: Annotated[str, Field(pattern=r"^projects/[^/\s]+/locations/[a-z0-9-]+/ragCorpora/[^/\s]+$")]
    doc_id: DocumentIds = DocumentIds()
    api_endpoint: Endpoint | None = None

    @field_validator("doc_id")
    @classmethod
    def _of_documents(cls, value: DocumentIds) -> DocumentIds:
        if value.field == "chunk":
            raise ValueError("names chunks; questions are made from whole documents")
        return value


class VertexSearchModel(Section):
    """`documents: {vertex_search: …}`, the name of a data store, or a mapping.

    Attributes:
        data_store: its full name, with or without a branch.
        unit: whole documents, or the chunks of a data store that has some.
        fields: fields of structured documents, whose values are the text, in this order.
        api_endpoint: address of the service; by default the public one of the location.
    """

    bare: ClassVar[tuple[str, type] | None] = ("data_store", str)

    data_store: Annotated[
        str,
        Field(
            pattern=r"^projects/[^/\s]+/locations/[a-z0-9-]+/(collections/[^/\s]+/)?dataStores/[^/\s]+"
            r"(/branches/[^/\s]+)?$"
        ),
    ]
    unit: Literal["document", "chunk"] = "document"
    fields: Annotated[list[Word], Field(min_length=1)] = Field(default_factory=lambda: ["text", "content", "body"])
    api_endpoint: Endpoint | None = None

    @property
    def branch(self) -> str:
        """The full name of the branch that holds the documents."""
        return self.data_store if "/branches/" in self.data_store else f"{self.data_store}/branches/default_branch"


class DocumentsModel(Section):
    """`documents:`, a path, or a mapping with one of `path`, `folder`, `chunks`, `rag_engine` and `vertex_search`.

    Attributes:
        path: a corpus: JSON lines, tab separated text, Parquet or a table of BigQuery; or a folder of text,
            Markdown, HTML, DOCX and PDF files on this machine.
        folder: such a folder, here or in a bucket.
        glob: pattern of the relative paths of the folder's documents; by default all files.
        chunks: a corpus of chunks instead, each with the id of its document as `doc_id`; questions are made from them.
        rag_engine: a corpus of RAG Engine instead, whose files are read where they were imported from.
        vertex_search: a data store of Vertex AI Search instead.
        attributes: attributes of the documents by which questions are distributed, besides topics.
        language: language of the texts, a Snowball algorithm.
        span_tokens: about the most tokens of a document's part that a question is made from.
        sample: most documents to read, chosen by `seed`, of a corpus or folder that is too large for memory; by default
            all of them. Questions, judgements and the corpus of the benchmark are about these documents only.
    """

    bare: ClassVar[tuple[str, type] | None] = ("path", str)

    path: Location | None = None
    folder: Word | None = None
    glob: Word = EVERYTHING
    chunks: Location | None = None
    rag_engine: RagEngineModel | None = None
    vertex_search: VertexSearchModel | None = None
    attributes: list[Word] = Field(default_factory=list)
    language: Language = "english"
    span_tokens: Annotated[int, Field(ge=50, le=100_000)] = 800
    sample: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_place(self) -> "DocumentsModel":
        places = (self.path, self.folder, self.chunks, self.rag_engine, self.vertex_search)
        if sum(place is not None for place in places) != 1:
            keys = "path, folder, chunks, rag_engine or vertex_search"
            raise ValueError(f"is a path, or a mapping with {keys}; give one of them")
        if self.sample is not None and self.path is None and self.folder is None:
            raise ValueError("sample works only with path and folder; remove it, or name the documents by one of these")
        return self

    def origin(self, folder: str, seed: int) -> Origin:
        """Sources of the documents, with paths below a folder; the seed chooses a sample."""
        sample = None if self.sample is None else Sample(self.sample, seed)
        if self.rag_engine is not None:
            return RagFiles(self.rag_engine.corpus, self.rag_engine.doc_id, self.rag_engine.api_endpoint)
        if (search := self.vertex_search) is not None:
            return DataStore(search.branch, search.unit == "chunk", tuple(search.fields), search.api_endpoint)
        if self.folder is not None:
            return SourceFiles(files.below(folder, self.folder), sample=sample, glob=self.glob)
        return SourceFiles(files.below(folder, self.path or self.chunks or ""), self.chunks is not None, sample)


class PoolModel(Section):
    """`pool:`, a number of documents, or a mapping.

    Attributes:
        documents: most documents to grade for a question, among those that retrievers find.
        retrievers: retrievers that find them, in turn: types, or mappings as under `retriever:` of an experiment.
    """

    bare: ClassVar[tuple[str, type] | None] = ("documents", int)

    documents: Annotated[int, Field(ge=0, le=100)] = 20
    retrievers: Annotated[list[Word | dict[str, Any]], Field(min_length=1, max_length=10)] = ["bm25"]  # noqa: RUF012  pydantic copies it


class DuplicatesModel(Section):
    """`duplicates:`, the name of a model, or a mapping.

    Attributes:
        embedding_model: the name of the service that embeds questions.
        cosine: least similarity of two duplicate questions.
    """

    bare: ClassVar[tuple[str, type] | None] = ("embedding_model", str)

    embedding_model: Word
    cosine: Annotated[float, Field(gt=0.0, le=1.0)] = 0.92


class ReviewsModel(Section):
    """`reviews:`, what is checked of every question, besides what always is.

    Attributes:
        critics: three critics, and a second round where they do not agree; four to seven further calls an item.
        closed_book: whether the writing model knows the answer without any text; such items are marked.
        pool: documents that are graded for the question, as `PoolModel` describes them.
        duplicates: near-duplicates by embeddings, besides those by wording, as `DuplicatesModel` describes them.
    """

    critics: bool = False
    closed_book: bool = True
    pool: PoolModel = Field(default_factory=PoolModel)
    duplicates: DuplicatesModel | None = None


class GoldensOutput(Section):
    """`output:`, a folder, or a mapping.

    Attributes:
        path: the folder of the benchmark.
        ledger: the folder that keeps the answers of models; by default `ledger` below `path`.
    """

    bare: ClassVar[tuple[str, type] | None] = ("path", str)

    path: Word
    ledger: Word | None = None


class ContextModel(Section):
    """`context:`, a number of passages, or a mapping.

    Attributes:
        passages: number of passages of other documents that are found for each span.
        neighbours: number of passages of the same document, before and after each, that are added to it.
        by: "bm25" finds passages by the span's words, "pool" by the retrievers of `reviews.pool`, services included.
        enlarged: if true, the writer first describes what to search for and makes up an example passage (HyDE); this
            text is searched for instead of the span's.
        overall: if true, the model also distils all passages of a span together, and what it chooses is added.
    """

    bare: ClassVar[tuple[str, type] | None] = ("passages", int)

    passages: Annotated[int, Field(ge=0, le=10)] = 0
    neighbours: Annotated[int, Field(ge=0, le=5)] = 0
    by: Literal["bm25", "pool"] = "bm25"
    overall: bool = False
    enlarged: bool = False


class GoldensModel(Section):
    """The whole file.

    Attributes:
        name: name of the benchmark.
        documents: its documents, as `DocumentsModel` describes them.
        services: models, each named once: its type and that type's parameters.
        writer: the name of the model that writes.
        checker: the name of the model that checks; better another one than the writer.
        items: so many questions.
        types: types of questions: a list, or a mapping to their relative shares.
        context: passages of other documents that are found for each span, and distilled to sentences that questions
            may use, too, as `ContextModel` describes them.
        profiles: a JSON file of the dimensions that questions vary by, as Auto RAG Eval's `qa_profiles.json`.
        reviews: checks of the questions, as `ReviewsModel` describes them.
        split: names of splits, and their shares in relation to each other. No document is relevant in two splits.
        seed: seed of every random choice.
        max_cost: most that all calls may cost, in the currency of the prices under `quotas:`, which are then required.
        quotas: budgets of the services, as in an experiment.
        output: folder of the benchmark.
    """

    name: Word
    documents: DocumentsModel
    services: dict[str, Any]
    writer: Word
    checker: Word
    items: Annotated[int, Field(ge=1, le=1_000_000)]
    types: dict[str, Count] = Field(default_factory=lambda: {name: one.share for name, one in TYPES.items()})
    context: ContextModel = Field(default_factory=ContextModel)
    profiles: Word | None = None
    reviews: ReviewsModel = Field(default_factory=ReviewsModel)
    split: Annotated[dict[Name, Positive], Field(min_length=1)] = Field(default_factory=lambda: {"test": 1.0})
    seed: Annotated[int, Field(ge=0, le=MOST)] = 0
    max_cost: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None
    quotas: dict[str, Any] = Field(default_factory=dict)
    output: GoldensOutput

    @model_validator(mode="after")
    def _pool_of_context(self) -> "GoldensModel":
        if self.context.by == "pool" and self.reviews.pool.documents < self.context.passages:
            raise ValueError("context.by: pool needs reviews.pool with at least as many documents as context.passages")
        return self

    @field_validator("types", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        is_list = isinstance(value, list) and all(isinstance(name, str) for name in value)
        return {name: TYPES[name].share if name in TYPES else 1 for name in value} if is_list else value

    @field_validator("types")
    @classmethod
    def _known(cls, value: dict[str, int]) -> dict[str, int]:
        for name in value:
            if name not in TYPES:
                raise ValueError(f"unknown type of question {name!r}; {did_you_mean(name, TYPES)}")
        if not value:
            raise ValueError(f"name at least one of {', '.join(TYPES)}")
        return value
