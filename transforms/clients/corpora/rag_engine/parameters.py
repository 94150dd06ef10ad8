"""The corpus type `rag_engine`: settings of a corpus of Vertex AI RAG Engine, and of its database."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from rankbeam.transforms.clients.corpora.base import CorpusParameters
from rankbeam.transforms.clients.formats.documents.files import FolderSource
from rankbeam.transforms.clients.google.channels import Endpoint
from rankbeam.transforms.clients.parameters import matching
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.corpora import AS_STAGED, SearchedCorpus

_PLAIN = ("knn", "ann")
_ABSENT = {
    "weaviate": "Weaviate",
    "vertex_feature_store": "Feature Store",
    "rag_managed_vertex_vector_search": "managed Vector Search",
}  # databases of the API's beta version only
Text = Annotated[str, Field(min_length=1)]
_LOCATION = re.compile(r"projects/[^/\s]+/locations/[a-z0-9-]+")
_STAGING = re.compile(r"gs://[a-z0-9][a-z0-9._-]+[a-z0-9](/[^\s*?\[\]]+)?")
_KEEP = re.compile(r"run|always|[1-9]\d{0,4}d")
_MODEL = re.compile(r"projects/[^/\s]+/locations/[^/\s]+/(publishers/google/models|endpoints)/[^/\s]+|[^/\s]+")


def _resource(*parts: str) -> Any:
    form = "/".join(f"{part}/[^/\\s]+" for part in parts)
    return Field(pattern=f"^{form}$")


class _Database(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def resource(self) -> str | None:
        """Name of a user's index, which only one corpus can have; None if the service has an index for each corpus."""
        return None

    def config(self) -> dict[str, Any]:
        """The part of `vector_db_config` that names the database."""
        raise NotImplementedError


class ManagedAnn(_Database):
    """The service's own database with approximate search."""

    type: Literal["ann"]
    tree_depth: Literal[2, 3] | None = None
    leaf_count: Annotated[int, Field(ge=1, le=(1 << 31) - 1)] | None = None

    def config(self) -> dict[str, Any]:
        return {"rag_managed_db": {"ann": self.model_dump(include={"tree_depth", "leaf_count"}, exclude_none=True)}}


class VectorSearch(_Database):
    """An index of Vertex AI Vector Search, deployed to an endpoint."""

    type: Literal["vertex_vector_search"]
    index: Annotated[str, _resource("projects", "locations", "indexes")]
    index_endpoint: Annotated[str, _resource("projects", "locations", "indexEndpoints")]

    @property
    def resource(self) -> str:
        return self.index

    def config(self) -> dict[str, Any]:
        return {"vertex_vector_search": {"index": self.index, "index_endpoint": self.index_endpoint}}


class Pinecone(_Database):
    """An index of Pinecone; its key is a secret that the service reads."""

    type: Literal["pinecone"]
    index_name: Annotated[str, Field(min_length=1)]
    api_key_secret_version: Annotated[str, _resource("projects", "secrets", "versions")] = Field(exclude=True)

    @property
    def resource(self) -> str:
        return self.index_name

    def config(self) -> dict[str, Any]:
        key = {"api_key_secret_version": self.api_key_secret_version}
        return {"pinecone": {"index_name": self.index_name}, "api_auth": {"api_key_config": key}}


def _simplify_database(value: Any) -> Any:
    """Shorten a mapping without parameters to the plain word, so that both have one identity; refuse unknown types."""
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if kind in _ABSENT:
        raise ValueError(f"the API of RAG Engine that rankbeam calls (v1) has no {_ABSENT[kind]}")
    return kind if kind in _PLAIN and len(value) == 1 else value


def _parse_database(value: Any) -> Any:
    """The plain word, or the database that a mapping describes; error messages name the type and the key."""
    value = _simplify_database(value)
    if value in _PLAIN or isinstance(value, BaseModel):
        return value
    if not isinstance(value, dict) or value.get("type") not in _TYPES:
        types = ", ".join(dict.fromkeys((*_PLAIN, *_TYPES)))
        raise ValueError(f"is knn or ann, or has a type: {{type: …}}; valid are: {types}")
    return _TYPES[value["type"]].model_validate(value)


_TYPES: dict[str, type[_Database]] = {
    "ann": ManagedAnn,
    "vertex_vector_search": VectorSearch,
    "pinecone": Pinecone,
}
Database = Annotated[Literal["knn", "ann"] | ManagedAnn | VectorSearch | Pinecone, BeforeValidator(_parse_database)]


Location = Annotated[str, matching(_LOCATION, "is not a location; give projects/PROJECT/locations/REGION")]
Staging = Annotated[
    str,
    matching(_STAGING, "is not a folder of Cloud Storage, from which the service reads; give gs://BUCKET/FOLDER"),
    AfterValidator(lambda value: value.rstrip("/")),
]
Keep = Annotated[str, matching(_KEEP, "says how long the corpus is kept: run, always, or a number of days such as 14d")]
Model = Annotated[
    str, matching(_MODEL, "is a model's name, or projects/P/locations/L/publishers/google/models/M or …/endpoints/E")
]


def _checked_fields(value: tuple[str, ...]) -> tuple[str, ...]:
    if value not in {("text",), ("title", "text")}:
        raise ValueError("are the parts of a document that are imported; give [text] or [title, text]")
    return value


class RagEngineCorpus(CorpusParameters):
    """A corpus that rankbeam builds from `dataset.corpus` or from a folder of files, or finds built.

    Attributes:
        location: project and region: projects/P/locations/L.
        staging: folder gs://BUCKET/FOLDER to which documents are uploaded for the service to import.
        fields: parts of a document that are imported: `[text]`, or `[title, text]` joined by a line break. Evidence
            spans and chunk ids count from the beginning of the text in both cases.
        folder: folder whose files, such as PDF files, are imported as they are instead of the texts of
            `dataset.corpus`: a local folder, which is uploaded, or gs://BUCKET/FOLDER, which is imported in place. The
            id of a document is its path in the folder.
        glob: pattern of the paths of the files in `folder`; by default all files of the types that the service parses.
        embedding_model: name of a Google model, or the full name of an endpoint.
        chunk_size: maximum size of a chunk, in the service's tokens.
        chunk_overlap: overlap of a chunk with the previous one, in the same tokens.
        database: vector database of the corpus: "knn" is the service's own with exact search, "ann" with approximate
            search. `{type: ann, tree_depth: 2, leaf_count: 500}` sets its tree; `{type: vertex_vector_search, index: …,
            index_endpoint: …}` and `{type: pinecone, index_name: …, api_key_secret_version: …}` name your own index.
        layout_parser: full name of a Document AI processor that parses documents.
        llm_parser: name of a model that parses documents.
        kms_key: key of Cloud KMS that encrypts the corpus, in its region; by default Google's keys.
        keep: lifetime of the corpus: "run" deletes it at the end of the run, "always" never expires, and a number of
            days such as "14d" counts from its last use.
        max_import_failures: maximum number of documents that may fail to import; by default 1% of the documents.
        api_endpoint: address of the service; by default the region's public address.
    """

    location: Location
    staging: Staging
    embedding_model: Model
    database: Database = "knn"
    layout_parser: Text | None = None
    llm_parser: Text | None = None
    fields: Annotated[tuple[Literal["title", "text"], ...], AfterValidator(_checked_fields)] = ("text",)
    folder: Text | None = None
    glob: Text | None = None
    kms_key: Annotated[str, _resource("projects", "locations", "keyRings", "cryptoKeys")] | None = None
    keep: Keep = "14d"
    max_import_failures: Annotated[int, Field(ge=0)] | None = None
    api_endpoint: Endpoint | None = None

    added: ClassVar[frozenset[str]] = frozenset({"layout_parser", "llm_parser", "fields", "folder", "glob", "kms_key"})
    operational: ClassVar[frozenset[str]] = frozenset({"staging", "keep", "max_import_failures", "api_endpoint"})

    @model_validator(mode="after")
    def _folder_alone(self) -> "RagEngineCorpus":
        if self.folder is None:
            if self.glob is not None:
                raise ValueError("glob needs folder, whose files it names")
            return self
        if self.titled:
            raise ValueError(
                "fields are parts of texts, and files of a folder are imported as they are; take fields out"
            )
        ours, theirs = f"{self.staging}/", f"{self.folder.rstrip('/')}/"
        if ours.startswith(theirs) or theirs.startswith(ours):
            raise ValueError("folder and staging must not contain each other: rankbeam writes and deletes in staging")
        return self

    @property
    def needs(self) -> tuple[str, ...]:
        return super().needs if self.folder is None else ()

    @property
    def original(self) -> FolderSource | None:
        """The folder whose files are imported as they are."""
        return None if self.folder is None else FolderSource(self.folder.rstrip("/"), self.glob or "")

    def resolved(self, folder: str) -> "RagEngineCorpus":
        return self if self.folder is None else self.model_copy(update={"folder": files.below(folder, self.folder)})

    def specification(self) -> dict[str, Any]:
        """See `CorpusParameters`; of a path on this machine, only the folder's name counts."""
        values = super().specification()
        if self.folder is not None and files.is_local(self.folder):
            values["folder"] = PurePosixPath(self.folder).name
        return values

    def service_corpus(self, identity: str, resource: str = "") -> SearchedCorpus:
        return SearchedCorpus(identity, self.location, self.api_endpoint, resource, self.root)

    @property
    def root(self) -> str | None:
        if self.folder is None:
            return None
        return AS_STAGED if files.is_local(self.folder) else self.folder.rstrip("/")

    @property
    def titled(self) -> bool:
        return "title" in self.fields

    def described(self) -> str:
        titles = ", with titles" if self.titled else ""
        folder = "" if self.folder is None else f", from the files of {self.folder}"
        return f"{super().described()}, {self.embedding_model}{titles}{folder}, in {self.location}"

    def vector_database(self) -> dict[str, Any]:
        model = self.embedding_model
        endpoint = model if "/" in model else f"{self.location}/publishers/google/models/{model}"
        database = self.database
        return {
            **({"rag_managed_db": {database: {}}} if isinstance(database, str) else database.config()),
            "rag_embedding_model_config": {"vertex_prediction_endpoint": {"endpoint": endpoint}},
        }

    def import_config(self) -> dict[str, Any]:
        """Rules for chunking and parsing files, in the form that an import takes."""
        chunking = {"chunk_size": self.chunk_size, "chunk_overlap": self.chunk_overlap}
        parsers = {
            "layout_parser": self.layout_parser and {"processor_name": self.layout_parser},
            "llm_parser": self.llm_parser and {"model_name": self.llm_parser},
        }
        configured = {name: parser for name, parser in parsers.items() if parser}
        # The service only builds its tree if an import requests it.
        is_approximate = self.database == "ann" or isinstance(self.database, ManagedAnn)
        return {
            "rag_file_transformation_config": {"rag_file_chunking_config": {"fixed_length_chunking": chunking}},
            **({"rag_file_parsing_config": configured} if configured else {}),
            **({"rebuild_ann_index": True} if is_approximate else {}),
        }

    def most_failures(self, documents: int) -> int:
        return documents // 100 if self.max_import_failures is None else self.max_import_failures
