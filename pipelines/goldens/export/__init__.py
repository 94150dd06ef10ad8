"""A benchmark in the formats of other tools."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from rankbeam.pipelines.goldens.export import adk, plain
from rankbeam.pipelines.goldens.export.items import Chosen

FORMATS: Mapping[str, Callable[[Chosen, str], dict[str, str]]] = MappingProxyType(
    {
        "adk": adk.files_of,
        "adk_list": plain.adk_list,
        "auto_rag_eval": plain.auto_rag_eval,
        "beir": plain.beir,
        "csv": plain.table,
        "ragas": plain.ragas,
        "trec": plain.trec,
        "vertex": plain.vertex,
    }
)
"""By name, what makes the files of a format: their content by path, from the items and the path of the output."""
