"""Families of embedding models that embed queries and documents differently, by model name.

The models' cards document this. Without its prefixes, a model ranks worse, and nothing reveals the mistake.
"""

import json
import re

from rankbeam.transforms.clients.models.base import ModelParameters

_TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
_SENTENCE = "Represent this sentence for searching relevant passages: "


def _family(name: str, **settings: str) -> tuple[re.Pattern[str], dict[str, str]]:
    return re.compile(rf"(?:^|.*[/_@:-])(?:{name}).*"), settings


FAMILIES = (
    _family(r"e5-mistral|(?:multilingual-)?e5-[a-z]+-instruct", query_prefix=_TASK),
    _family(r"(?:multilingual-)?e5-(?:small|base|large)", query_prefix="query: ", document_prefix="passage: "),
    _family(r"bge-(?:small|base|large)-en", query_prefix=_SENTENCE),
    _family(r"bge-(?:small|base|large)-zh", query_prefix="为这个句子生成表示以用于检索相关文章："),
    _family(r"nomic-embed-text", query_prefix="search_query: ", document_prefix="search_document: "),
    _family(r"mxbai-embed-large", query_prefix=_SENTENCE),
    _family(r"arctic-embed-[a-z]+-v2", query_prefix="query: "),
    _family(r"arctic-embed", query_prefix=_SENTENCE),
    _family(r"qwen3-embedding", query_prefix=_TASK),
    _family(r"embedding-?gemma", query_prefix="task: search result | query: ", document_prefix="title: none | text: "),
    _family(r"gemini-embedding-001|text-(?:multilingual-)?embedding-00\d", task_type="RETRIEVAL_QUERY"),
)
"""The first family whose pattern matches applies."""


def missing_roles(parameters: ModelParameters) -> list[str]:
    """Warnings for a model used for retrieval, about unset settings that its family expects.

    >>> class Any(ModelParameters):
    ...     query_prefix: str = ""
    >>> missing_roles(Any(model="mxbai-embed-large-v1"))  # doctest: +ELLIPSIS
    ['mxbai-embed-large-v1 expects query_prefix: "Represent this sentence for searching relevant passages: "; ...']
    >>> missing_roles(Any(model="mxbai-embed-large-v1", query_prefix=""))
    []
    """
    name = parameters.model or str(getattr(parameters, "folder", ""))
    expected = next((settings for family, settings in FAMILIES if family.fullmatch(name.lower())), {})
    unset = type(parameters).model_fields.keys() - parameters.model_fields_set
    missing = [name for name in expected if name in unset]
    if not missing:
        return []
    settings = " and ".join(f"{name}: {_yaml_text(expected[name])}" for name in missing)
    none = " and ".join(name + (": null" if name == "task_type" else ': ""') for name in missing)
    return [f"{name} expects {settings}; set this under services:, or {none} to embed texts as they are"]


def _yaml_text(value: str) -> str:
    return value if value.isupper() else json.dumps(value, ensure_ascii=False)
