"""The JSON Schema of the experiment file, by which editors complete keys and mark mistakes.

Retrievers, services and corpora are unions by `type`, of all types that installed packages register.
"""

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from rankbeam.pipelines.experiment.file.corpora import CORPUS
from rankbeam.pipelines.experiment.file.generate import GenerateParameters, ModelRerankParameters, RewriteParameters
from rankbeam.pipelines.experiment.file.models import DISTANCE, ExperimentModel
from rankbeam.pipelines.experiment.file.quotas import ImportQuotaModel, QuotaModel
from rankbeam.pipelines.experiment.file.traces import TracesModel
from rankbeam.transforms.clients.corpora.base import CORPORA
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.clients.parameters import Kind
from rankbeam.transforms.clients.retrievers.applications.ask import APPLICATIONS
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS, RetrieverParameters
from rankbeam.transforms.clients.retrievers.replay import TRACES, Replay
from rankbeam.transforms.clients.retrievers.rerankers import RERANKERS

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The version that the YAML language server, and so most editors, reads."""

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string", "minLength": 1}
_QUERY: Schema = {
    "type": "object",
    "properties": {"query": _TEXT, "project": _TEXT, "parameters": {"type": "object"}},
    "required": ["query"],
    "additionalProperties": False,
}


_FOLDER: Schema = {
    "type": "object",
    "properties": {"folder": _TEXT, "glob": _TEXT},
    "required": ["folder"],
    "additionalProperties": False,
}


class _WithMeanings(GenerateJsonSchema):
    """Gives every key its meaning from the model's docstring, and no title made from its name."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        model_properties = super().model_schema(schema)
        model = schema["cls"]
        known = meanings(model)
        for name, key in model_properties.get("properties", {}).items():
            if name in known:
                key["description"] = known[name]
        return model_properties | {"description": summary(model)}

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002  none should
        return False


def as_json() -> str:
    return json.dumps(experiment_schema(), indent=2, ensure_ascii=False) + "\n"


def experiment_schema() -> Schema:
    defs: Schema = {}
    root = _schema(ExperimentModel, "", defs)
    root["required"] = [key for key in root["required"] if key != "output"]  # by default out/NAME
    defs["OutputModel"] = _without_required(defs["OutputModel"])
    keys, dataset, configuration = root["properties"], defs["DatasetModel"], defs["ConfigurationModel"]
    keys["services"]["additionalProperties"] = _union(MODELS, defs)
    keys["corpora"]["additionalProperties"] = _union(CORPORA, defs, swept=True)
    keys["quotas"]["additionalProperties"] = _define_quotas(QuotaModel, defs)
    keys["quotas"]["properties"] = {"rag_engine_import": _define_quotas(ImportQuotaModel, defs)}
    for role in ("qrels", "queries", "corpus"):
        dataset["properties"][role]["anyOf"].append(_QUERY)
    dataset["properties"]["corpus"]["anyOf"].append(_FOLDER)
    for role in ("answers", TRACES):
        dataset["properties"][role]["anyOf"].append(_TEXT)
    criteria = defs["JudgeModel"]["properties"]["criteria"]
    criteria["additionalProperties"] = {"anyOf": [criteria["additionalProperties"], _TEXT]}
    components = {
        "retriever": [_union(RETRIEVERS, defs, swept=True)],
        "answers": [
            _define_type("replay", Replay, "answers.replay", defs, swept=True),  # `dataset.file` may be the path
            _define_type(TRACES, TracesModel, f"answers.{TRACES}", defs),
            *(_define_type(name, model, f"answers.{name}", defs, swept=True) for name, model in APPLICATIONS.items()),
        ],
        "rewrite": [_without_required(_schema(RewriteParameters, "rewrite.", defs))],
        "rerank": [
            _without_required(_schema(ModelRerankParameters, "rerank.service.", defs)),
            *_union(RERANKERS, defs, swept=True)["oneOf"],
        ],
        "generate": [_without_required(_schema(GenerateParameters, "generate.", defs))],
    }
    for name, options in components.items():
        configuration["properties"][name] |= {"anyOf": [*options, {"type": "null"}]}
    return {"$schema": DIALECT, **root, "title": "rankbeam experiment", "$defs": defs}


def _union(kind: Kind[Any], defs: Schema, *, swept: bool = False) -> Schema:
    """One of the types of a kind; parameters that the grid can set are optional in the component."""
    options = [
        _define_type(name, kind.load(name), f"{kind.name}.{name}", defs, swept=swept) for name in sorted(kind.types)
    ]
    return {"oneOf": options, "discriminator": {"propertyName": "type"}}


def _define_type(name: str, model: type[BaseModel], label: str, defs: Schema, *, swept: bool = False) -> Schema:
    properties = _schema(model, f"{label}.", defs)
    properties = _without_required(properties) if swept else properties
    keys = {**properties.get("properties", {}), **dict(_further_keys(model, properties))}
    for key in model.unused if issubclass(model, RetrieverParameters) else ():
        keys.pop(key, None)
    required = ["type", *properties.get("required", ())]
    defs[label] = {**properties, "properties": {"type": {"const": name}, **keys}, "required": required}
    return {"$ref": f"#/$defs/{label}"}


def _further_keys(model: type[BaseModel], properties: Mapping[str, Any]) -> Iterator[tuple[str, Schema]]:
    """Keys of a retriever that its model does not read, or not with all their values."""
    if issubclass(model, RetrieverParameters):
        if model.searches:
            corpus_key = properties.get("properties", {}).get(CORPUS)
            named = {**_TEXT, "description": "The name of an entry of `corpora:`."}
            yield CORPUS, named if corpus_key is None else {"anyOf": [corpus_key, named]}
        if model.has_distances or "lower_is_better" in model.model_fields.keys() - model.unused:
            yield DISTANCE, {"type": "number", "exclusiveMinimum": 0}


def _define_quotas(model: type[BaseModel], defs: Schema) -> Schema:
    defs[model.__name__] = _schema(model, "quota.", defs)
    return {"$ref": f"#/$defs/{model.__name__}"}


def _schema(model: type[BaseModel], label: str, defs: Schema) -> Schema:
    """The schema of a model; its fields' models go into `defs`, under a label that distinguishes equal names."""
    model_schema = model.model_json_schema(ref_template=f"#/$defs/{label}{{model}}", schema_generator=_WithMeanings)
    defs |= {f"{label}{name}": value for name, value in model_schema.pop("$defs", {}).items()}
    return model_schema


def _without_required(properties: Schema) -> Schema:
    return {key: value for key, value in properties.items() if key != "required"}


_SECTION = "Attributes:\n"


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """The meaning of each key, from the docstrings of a model and its bases.

    >>> from rankbeam.pipelines.experiment.file.models import OutputModel
    >>> meanings(OutputModel)["path"]
    'folder for all results, by default out/NAME.'
    """
    texts: dict[str, str] = {}
    for base in reversed(model.__mro__):
        for names, text in _attributes(inspect.cleandoc(base.__doc__ or "")):
            texts |= dict.fromkeys(names, text)
    return texts


def summary(model: type[BaseModel]) -> str:
    """The part of a model's docstring before its keys."""
    return inspect.cleandoc(model.__doc__ or "").partition(_SECTION)[0].strip()


def _attributes(doc: str) -> Iterator[tuple[list[str], str]]:
    _, heading, after = doc.partition(_SECTION)
    section = re.split(r"\n(?=\S)", after)[0] if heading else ""
    for item in re.split(r"\n(?=    \S)", f"\n{section}"):
        names, _, text = item.strip().partition(": ")
        if text:
            yield [name.strip() for name in names.split(",")], " ".join(text.split())
