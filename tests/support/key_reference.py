"""The reference of an experiment's keys, `docs/experiment.md`, made from the models that read them.

python tests/support/key_reference.py > docs/experiment.md
"""

import json
import re
from collections.abc import Sequence

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rankbeam.pipelines.experiment.generate import GenerateParameters, JudgeModel
from rankbeam.pipelines.experiment.meanings import meanings
from rankbeam.pipelines.experiment.models import (
    ConfigurationModel,
    DatasetModel,
    ExperimentModel,
    OutputModel,
    RaceModel,
    ReferencesModel,
    StatisticsModel,
)
from rankbeam.pipelines.experiment.quota_models import ImportQuotaModel, PricesModel, QuotaModel
from rankbeam.pipelines.gates.models import GateModel
from rankbeam.transforms.clients.corpora.base import CORPORA
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS
from rankbeam.transforms.clients.retrievers.replay import Replay

SECTIONS: Sequence[tuple[str, type[BaseModel]]] = (
    ("The file", ExperimentModel),
    ("`dataset:`", DatasetModel),
    ("`dataset.answers:`", ReferencesModel),
    ("`configurations:`, each item", ConfigurationModel),
    ("`generate:` of a configuration", GenerateParameters),
    ("`answers:` of a configuration, with `type: replay`", Replay),
    ("`judge:`", JudgeModel),
    ("`quotas:`, each item", QuotaModel),
    ("`price_per_million:` of a quota", PricesModel),
    ("`quotas:`, the item `rag_engine_import`", ImportQuotaModel),
    ("`statistics:`", StatisticsModel),
    ("`race:`", RaceModel),
    ("`gates:`, each item", GateModel),
    ("`output:`", OutputModel),
)

_MODEL = re.compile(r",\s+as\s+`\w+`\s+describes\s+(?:it|them)")

_START = """\
# The experiment file

Every key of an experiment, with its default and what it means. Paths are relative to the file, or on any of Beam's
filesystems. An unknown key is refused with its line and the nearest valid name.

This file is made from the models that read experiments (`python tests/support/key_reference.py > docs/experiment.md`).
"""


def reference() -> str:
    """The whole reference, as Markdown."""
    parts = [_START, *(_section(title, model) for title, model in SECTIONS)]
    kinds = (("`retriever:`", RETRIEVERS), ("`corpora:`, each item", CORPORA), ("`services:`, each item", MODELS))
    for heading, kind in kinds:
        for name, point in sorted(kind.types.items()):
            if point.value.startswith("rankbeam."):
                parts.append(_section(f"{heading} with `type: {name}`", kind.load(name)))
    return "\n".join(parts)


def _section(title: str, model: type[BaseModel]) -> str:
    known = meanings(model)
    rows = [f"| `{name}` | {_default(field)} | {_written(known[name])} |" for name, field in model.model_fields.items()]
    return "\n".join([f"## {title}", "", "| key | default | meaning |", "|---|---|---|", *rows, ""])


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "see below"
    return "" if value is None or value in ([], {}) else f"`{json.dumps(value, ensure_ascii=False)}`"


def _written(text: str) -> str:
    """The meaning of a key as a sentence in a cell of a table."""
    text = _MODEL.sub("; see below", text).replace("|", "\\|").removesuffix(".")
    return text[0].upper() + text[1:] + "."


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201  what it is for
