"""Vector databases of a corpus of RAG Engine: the service's own, or one that the user has."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_PLAIN = ("knn", "ann")
_ABSENT = {
    "weaviate": "Weaviate",
    "vertex_feature_store": "Feature Store",
    "rag_managed_vertex_vector_search": "managed Vector Search",
}
"""Databases that only the beta version of the API has."""


def _resource(*parts: str) -> Any:
    form = "/".join(f"{part}/[^/\\s]+" for part in parts)
    return Field(pattern=f"^{form}$")


class _Database(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def resource(self) -> str | None:
        """Name of the user's index, which only one corpus can have; None if the service has one for each corpus."""
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
        """As `_Database`."""
        return {"rag_managed_db": {"ann": self.model_dump(include={"tree_depth", "leaf_count"}, exclude_none=True)}}


class VectorSearch(_Database):
    """An index of Vertex AI Vector Search, deployed to an endpoint."""

    type: Literal["vertex_vector_search"]
    index: Annotated[str, _resource("projects", "locations", "indexes")]
    index_endpoint: Annotated[str, _resource("projects", "locations", "indexEndpoints")]

    @property
    def resource(self) -> str:
        """As `_Database`."""
        return self.index

    def config(self) -> dict[str, Any]:
        """As `_Database`."""
        return {"vertex_vector_search": {"index": self.index, "index_endpoint": self.index_endpoint}}


class Pinecone(_Database):
    """An index of Pinecone; its key is a secret that the service reads."""

    type: Literal["pinecone"]
    index_name: Annotated[str, Field(min_length=1)]
    api_key_secret_version: Annotated[str, _resource("projects", "secrets", "versions")] = Field(exclude=True)

    @property
    def resource(self) -> str:
        """As `_Database`."""
        return self.index_name

    def config(self) -> dict[str, Any]:
        """As `_Database`."""
        key = {"api_key_secret_version": self.api_key_secret_version}
        return {"pinecone": {"index_name": self.index_name}, "api_auth": {"api_key_config": key}}


def _shortened(value: Any) -> Any:
    """A mapping without parameters as the plain word, so that both have one identity; refuses what the API lacks."""
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if kind in _ABSENT:
        raise ValueError(f"the API of RAG Engine that rankbeam calls (v1) has no {_ABSENT[kind]}")
    return kind if kind in _PLAIN and len(value) == 1 else value


def _checked(value: Any) -> Any:
    """A word, or a mapping read as the database of its type; a message names the type and the key."""
    value = _shortened(value)
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
Database = Annotated[Literal["knn", "ann"] | ManagedAnn | VectorSearch | Pinecone, BeforeValidator(_checked)]


def config_of(database: Database) -> dict[str, Any]:
    """The part of `vector_db_config` that names the database."""
    return {"rag_managed_db": {database: {}}} if isinstance(database, str) else database.config()


def resource_of(database: Database) -> str | None:
    """Name of the user's index; None for the service's own database."""
    return None if isinstance(database, str) else database.resource


def is_approximate(database: Database) -> bool:
    """Return whether the service builds its tree only when an import says so."""
    return database == "ann" or isinstance(database, ManagedAnn)
