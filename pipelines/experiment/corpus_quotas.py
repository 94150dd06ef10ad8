"""The pools of `quotas:` that pay for building corpora: requests to the data API, and imports."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rankbeam.pipelines.config.problems import problem_of
from rankbeam.pipelines.config.yaml_lines import Located
from rankbeam.pipelines.experiment.quota_models import ImportQuotaModel, QuotaModel
from rankbeam.pipelines.experiment.quotas import quota_of
from rankbeam.pipelines.experiment.sources import PlannedSource
from rankbeam.transforms.records.calls.quota import ImportQuota, Quota
from rankbeam.transforms.records.errors import InputError

DATA, IMPORT = "rag_engine_data", "rag_engine_import"
Model = TypeVar("Model", bound=BaseModel)
NAMES = (DATA, IMPORT)
"""What these pools are called."""


@dataclass(frozen=True)
class CorpusQuotas:
    """The budgets of building corpora, each for one project and region.

    The defaults are what RAG Engine documents: https://cloud.google.com/vertex-ai/generative-ai/docs/quotas
    """

    data: Quota = field(default_factory=lambda: Quota(requests_per_minute=60))
    imports: ImportQuota = field(default_factory=ImportQuota)


def corpus_quotas_of(located: Located, given: Mapping[str, Any], problems: list[InputError]) -> CorpusQuotas:
    """The budgets of building corpora."""
    default = CorpusQuotas()
    data = _checked(located, QuotaModel, DATA, given, problems)
    imports = _checked(located, ImportQuotaModel, IMPORT, given, problems)
    return CorpusQuotas(
        default.data if data is None else quota_of(default.data, data),
        default.imports if imports is None else ImportQuota(**imports.model_dump(exclude_none=True)),
    )


def unpriced_imports(located: Located, sources: Iterable[PlannedSource], quotas: CorpusQuotas) -> Iterator[InputError]:
    """Imports whose embeddings have no price, so that a limit of cost cannot be kept."""
    corpora = (each.retriever.corpus for each in sources)
    is_served = any(each is not None and each.parameters.searched("") for each in corpora)
    if is_served and quotas.imports.price_per_million is None:
        price = f"quotas: {{{IMPORT}: {{price_per_million: …}}}}"
        yield located.error(("max_cost",), f"needs the price of every call, of embeddings too; give {price}")


def _checked(
    located: Located, model: type[Model], name: str, given: Mapping[str, Any], problems: list[InputError]
) -> Model | None:
    if name not in given:
        return None
    try:
        return model.model_validate(given[name])
    except ValidationError as error:
        problems += [problem_of(located, model, dict(each), at=("quotas", name)) for each in error.errors()]
        return None
