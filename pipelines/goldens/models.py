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
        corpus: full name of the corpus.
        doc_id: rule that turns a file's name into an id, as for the `rag_engine` retriever.
        api_endpoint: address of the service; by default the location's public address.
    """

    bare: ClassVar[tuple[str, type] | None] = ("corpus", str)

    corpus: Annotated[str, Field(pattern=r"^projects/[^/\s]+/locations/[a-z0-9-]+/ragCorpora/[^/\s]+$")]
    doc_id: DocumentIds = DocumentIds()
    api_endpoint: Endpoint | None = None

    @field_validator("doc_id")
    @classmethod
    def _is_about_documents(cls, value: DocumentIds) -> DocumentIds:
        if value.field == "chunk":
            raise ValueError("names chunks; questions are made from whole documents")
        return value


class VertexSearchModel(Section):
    """`documents: {vertex_search: …}`, the name of a data store, or a mapping.

    Attributes:
        data_store: full name of the data store, with or without a branch.
        unit: whole documents, or chunks if the data store has them.
        fields: fields of structured documents whose values are the text, in this order.
        api_endpoint: address of the service; by default the location's public address.
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
        path: a corpus: JSON lines, tab separated text, Parquet or a BigQuery table; or a local folder of text,
            Markdown, HTML, DOCX and PDF files.
        folder: a folder of such files, local or in a bucket.
        glob: pattern of the relative paths of the folder's documents; by default all files.
        chunks: a corpus of chunks instead, each with its document's id as `doc_id`; questions are made from the chunks.
        rag_engine: a corpus of RAG Engine instead; its source files are read from their original place.
        vertex_search: a data store of Vertex AI Search instead.
        attributes: document attributes by which questions are distributed, in addition to topics.
        language: language of the texts, as the name of a Snowball algorithm.
        span_tokens: approximate maximum tokens of the part of a document from which a question is made.
        sample: maximum number of documents to read, chosen by `seed`, for a corpus or folder that does not fit into
            memory; by default all. Questions, judgements and the benchmark's corpus only cover these documents.
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
        """The source of the documents, with paths below a folder; the seed chooses a sample."""
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
        documents: maximum number of retrieved documents to grade for a question.
        retrievers: retrievers that take turns: types, or mappings as under `retriever:` of an experiment.
    """

    bare: ClassVar[tuple[str, type] | None] = ("documents", int)

    documents: Annotated[int, Field(ge=0, le=100)] = 20
    retrievers: Annotated[list[Word | dict[str, Any]], Field(min_length=1, max_length=10)] = ["bm25"]  # noqa: RUF012  pydantic copies it


class DuplicatesModel(Section):
    """`duplicates:`, the name of a model, or a mapping.

    Attributes:
        embedding_model: name of the service that embeds questions.
        cosine: minimum similarity of two duplicate questions.
    """

    bare: ClassVar[tuple[str, type] | None] = ("embedding_model", str)

    embedding_model: Word
    cosine: Annotated[float, Field(gt=0.0, le=1.0)] = 0.92


class ReviewsModel(Section):
    """`reviews:`, checks of every question, in addition to those that always run.

    Attributes:
        critics: three critics, and a second round if they disagree; four to seven more calls for each item.
        closed_book: test whether the writing model knows the answer without any text; such items are marked.
        pool: documents that are graded for the question, see `PoolModel`.
        duplicates: near-duplicates by embeddings, in addition to those by wording, see `DuplicatesModel`.
    """

    critics: bool = False
    closed_book: bool = True
    pool: PoolModel = Field(default_factory=PoolModel)
    duplicates: DuplicatesModel | None = None


class GoldensOutput(Section):
    """`output:`, a folder, or a mapping.

    Attributes:
        path: folder of the benchmark.
        ledger: folder that stores the models' answers; by default `ledger` below `path`.
    """

    bare: ClassVar[tuple[str, type] | None] = ("path", str)

    path: Word
    ledger: Word | None = None


class ContextModel(Section):
    """`context:`, a number of passages, or a mapping.

    Attributes:
        passages: number of passages of other documents to retrieve for each span.
        neighbours: number of passages of the same document to add before and after each retrieved passage.
        by: "bm25" searches with the span's words, "pool" uses the retrievers of `reviews.pool`, including services.
        enlarged: if true, the writer first describes what to search for and makes up an example passage (HyDE); the
            search uses this text instead of the span's.
        overall: if true, the model also distils all passages of a span together, and the sentences it chooses are
            added.
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
        documents: documents of the benchmark, see `DocumentsModel`.
        services: models by name, each with its type and that type's parameters.
        writer: name of the model that writes.
        checker: name of the model that checks; preferably not the writer.
        items: number of questions.
        types: types of questions: a list, or a mapping to their relative shares.
        context: passages of other documents that are retrieved for each span, and distilled to sentences that
            questions may also use, see `ContextModel`.
        profiles: JSON file of the dimensions by which questions vary, like Auto RAG Eval's `qa_profiles.json`.
        reviews: checks of the questions, see `ReviewsModel`.
        split: names of splits with their relative shares. No document is relevant in two splits.
        seed: seed of every random choice.
        max_cost: maximum cost of all calls, in the currency of the prices under `quotas:`, which are then required.
        quotas: budgets of the services, as in an experiment.
        output: folder of the benchmark.
        previous: folder of an earlier benchmark. Its questions are taken over if their documents have not changed, and
            count as `items`.
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
    previous: Word | None = None

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
    def _refuse_unknown(cls, value: dict[str, int]) -> dict[str, int]:
        for name in value:
            if name not in TYPES:
                raise ValueError(f"unknown type of question {name!r}; {did_you_mean(name, TYPES)}")
        if not value:
            raise ValueError(f"name at least one of {', '.join(TYPES)}")
        return value
