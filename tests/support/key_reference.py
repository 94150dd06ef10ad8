"""The tables of `docs/experiment.md`, generated from the models that read experiments.

A table follows a line `<!-- keys: NAME -->` of the page. Everything else on the page is written by hand.

python tests/support/key_reference.py rewrites the tables.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rankbeam.pipelines.experiment.file.criteria import CriterionModel
from rankbeam.pipelines.experiment.file.generate import GenerateParameters, ModelRerankParameters, RewriteParameters
from rankbeam.pipelines.experiment.file.judge import JudgeModel
from rankbeam.pipelines.experiment.file.models import (
    ConfigurationModel,
    DatasetModel,
    ExperimentModel,
    HolesModel,
    MonitorModel,
    OutputModel,
    RaceModel,
    ReferencesModel,
    StatisticsModel,
)
from rankbeam.pipelines.experiment.file.quotas import ImportQuotaModel, PricesModel, QuotaModel
from rankbeam.pipelines.experiment.file.schema import meanings
from rankbeam.pipelines.experiment.file.traces import TracesModel
from rankbeam.pipelines.gates.gates import GateModel
from rankbeam.transforms.clients.corpora.base import CORPORA
from rankbeam.transforms.clients.models.base import MODELS
from rankbeam.transforms.clients.models.remote import Batch
from rankbeam.transforms.clients.retrievers.applications.ask import AdkApplication, ChatApplication
from rankbeam.transforms.clients.retrievers.applications.http import HttpApplication
from rankbeam.transforms.clients.retrievers.base import RETRIEVERS, RetrieverParameters, Route
from rankbeam.transforms.clients.retrievers.replay import Replay
from rankbeam.transforms.clients.retrievers.rerankers import RERANKERS, Reranker

PAGE = Path(__file__).parents[2] / "docs" / "experiment.md"
_TABLE = re.compile(r"(<!-- keys: ([^>]+) -->\n\n)(?:\|.*\n)*\n*")
_SECTIONS: Mapping[str, type[BaseModel]] = {
    "experiment": ExperimentModel,
    "dataset": DatasetModel,
    "dataset.answers": ReferencesModel,
    "dataset.qrels_holes": HolesModel,
    "configurations": ConfigurationModel,
    "generate": GenerateParameters,
    "rewrite": RewriteParameters,
    "rerank service": ModelRerankParameters,
    "answers replay": Replay,
    "answers traces": TracesModel,
    "answers http": HttpApplication,
    "answers openai_chat": ChatApplication,
    "answers adk": AdkApplication,
    "judge": JudgeModel,
    "services.batch": Batch,
    "judge.criteria": CriterionModel,
    "quotas": QuotaModel,
    "price_per_million": PricesModel,
    "rag_engine_import": ImportQuotaModel,
    "statistics": StatisticsModel,
    "race": RaceModel,
    "monitor": MonitorModel,
    "gates": GateModel,
    "output": OutputModel,
}


def sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """Names of the tables, each with its model."""
    yield from _SECTIONS.items()
    for heading, kind in (
        ("retriever", RETRIEVERS),
        ("rerank", RERANKERS),
        ("corpora", CORPORA),
        ("services", MODELS),
    ):
        for name, point in sorted(kind.types.items()):
            if point.value.startswith("rankbeam."):
                yield f"{heading} {name}", kind.load(name)


def named_tables(text: str) -> list[str]:
    """Names of the tables of a page."""
    return [match[2] for match in _TABLE.finditer(text)]


def with_tables(text: str) -> str:
    """The page with the tables that the models make."""
    models = dict(sections())
    return _TABLE.sub(lambda match: match[1] + _table(models[match[2]]), text)


def _table(model: type[BaseModel]) -> str:
    known = meanings(model)
    unused = {*(() if _joins_history(model) else ("query",)), *getattr(model, "unused", ())}
    fields = {name: field for name, field in model.model_fields.items() if name not in unused}
    rows = [f"| `{name}` | {_default(field)} | {_sentence(known[name])} |" for name, field in fields.items()]
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *rows, "", ""])


def _joins_history(model: type[BaseModel]) -> bool:
    """Return whether a retriever is asked queries; for all others `query: history` is refused."""
    if not issubclass(model, RetrieverParameters) or issubclass(model, HttpApplication | Reranker):
        return False
    return model.route in (Route.OPENED, Route.CALLED)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "see below"
    return "" if value is None or value in ([], {}) else f"`{json.dumps(value, ensure_ascii=False)}`"


def _sentence(text: str) -> str:
    """The meaning of a key as a sentence in a cell of a table."""
    text = text.replace("|", "\\|").removesuffix(".")
    return text[0].upper() + text[1:] + "."


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
