"""The schema of an experiment file: its keys, their types and their defaults."""

import itertools
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator, model_validator

from rankbeam.pipelines.experiment.generate import JudgeModel
from rankbeam.pipelines.experiment.keys import Count, Positive, Price, Section, Word
from rankbeam.pipelines.experiment.labels import values_of
from rankbeam.pipelines.gates.models import GateModel
from rankbeam.transforms.clients.bigquery.locations import Location
from rankbeam.transforms.records.metrics.names import DEFAULT_METRICS
from rankbeam.transforms.records.slices import canonical


class ReferencesModel(Section):
    """`dataset.answers`: the name of an attribute, or a mapping with one of these keys.

    Attributes:
        attribute: of the queries, whose value is the reference answer.
        path: JSON lines {query_id, answer, answerable?, nuggets?: [{text, vital}]}.
    """

    attribute: Word | None = None
    path: Word | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        return {"attribute": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_place(self) -> "ReferencesModel":
        if (self.attribute is None) == (self.path is None):
            raise ValueError("is an attribute of the queries, or a mapping with path; give one of them")
        return self


class DatasetModel(Section):
    """`dataset:`, paths relative to the experiment file, or on any of Beam's filesystems.

    In place of each path there may be a table or view of BigQuery, `bigquery://project.dataset.table`, or a mapping
    with `query`, `project` and `parameters`; columns are named as in Parquet files.

    Attributes:
        qrels: judgements: TREC, BEIR or Parquet; needed by metrics of rankings.
        queries: JSON lines, TREC topics or Parquet; needed by whatever is asked.
        corpus: documents: JSON lines, tab separated text or Parquet; needed by whatever indexes them, and by models
            that read documents which a run only names.
        answers: reference answers, as `ReferencesModel` describes them.
        evidence: with `unit: span`, the judgements: JSON lines or Parquet with query_id, doc_id, start, end, quote
            and, where given, group and grade; [start, end) counts code points of the document's text. Quotes are
            compared with the corpus.
        unit: what the judgements judge. With "document", several chunks of one document count as that document, at
            the best of their ranks; with "chunk", an id names one chunk and must not stand twice in a ranking. With
            "span", chunks are judged by the evidence that they overlap, however documents are cut.
        goldens: instead of the files above, the folder of a benchmark that `rankbeam goldens` made.
        beir: instead of files, the name of one of BEIR's collections, such as `fiqa`. It is fetched once, into the
            folder that RANKBEAM_COLLECTIONS names, or ~/.cache/rankbeam/collections.
        ir_datasets: instead of files, the name of a collection of the library ir_datasets, such as `beir/fiqa/test`. It
            needs `rankbeam[ir-datasets]`, and is fetched once as well.
        split: of that benchmark, or of BEIR's collection; `test` by default.
    """

    qrels: Location | None = None
    queries: Location | None = None
    corpus: Location | None = None
    answers: ReferencesModel | None = None
    evidence: Location | None = None
    unit: Literal["document", "chunk", "span"] = "document"
    goldens: Word | None = None
    beir: Word | None = None
    ir_datasets: Word | None = None
    split: Word | None = None

    @model_validator(mode="after")
    def _split_of_goldens(self) -> "DatasetModel":
        if self.split is not None and self.goldens is None:
            raise ValueError("has a split and neither goldens nor beir; a split is one of a benchmark's")
        return self


class ConfigurationModel(Section):
    """One item of `configurations:`.

    Attributes:
        name: for people; every configuration has its own.
        retriever: `type` and that type's parameters.
        answers: instead of a retriever, answers that exist already: {type: replay, path}.
        generate: the model that answers from the first results, as `GenerateParameters` describes it.
        top_k: results per query.
        vector_distance_threshold: only results nearer than this count; for retrievers whose scores are distances. It
            may stand inside `retriever:` as well. Not together with a similarity threshold.
    """

    name: Word
    retriever: dict[str, Any] | None = None
    answers: dict[str, Any] | None = None
    generate: dict[str, Any] | None = None
    top_k: Count | None = None
    vector_distance_threshold: Positive | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> "ConfigurationModel":
        if self.retriever is None and self.answers is None:
            raise ValueError("has no retriever, and no answers that exist already; give one of them")
        if self.answers is not None and (self.retriever is not None or self.generate is not None):
            raise ValueError("has answers that exist already, and what would make others; keep one")
        return self


class StatisticsModel(Section):
    """`statistics:`, how intervals and comparisons are made.

    Attributes:
        replicates: of the bootstrap; with 0, intervals of differences are Student's, and there are no joint ones.
        confidence: of intervals.
        seed: of the bootstrap's weights and the randomisation test's signs.
        pairs: with "baseline", every configuration is compared with the baseline; with "all", also with each other.
        min_slice: slices of fewer queries have means, but no interval and no comparison.
    """

    replicates: Annotated[int, Field(ge=0, le=100_000)] = 1000
    confidence: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.95
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    pairs: Literal["baseline", "all"] = "baseline"
    min_slice: Count = 10


class RaceModel(Section):
    """`race:`, by which configurations that cannot be the best are asked no further query.

    After each look, a configuration is dropped that is significantly worse than the best; the best is dropped with a
    probability of alpha at most, all looks together. It needs the bootstrap (`statistics.replicates`).

    Attributes:
        metric: by which configurations are compared; one of `metrics`.
        alpha: the probability with which the best may be dropped.
        looks: after how many queries configurations are dropped; the order of queries is that of a hash of their ids.
    """

    metric: Word
    alpha: Annotated[float, Field(gt=0.0, lt=0.5)] = 0.05
    looks: Annotated[list[Count], Field(min_length=1)] = [50, 100, 200, 350, 550, 1000]  # noqa: RUF012  pydantic copies it

    @field_validator("looks")
    @classmethod
    def _ascending(cls, value: list[int]) -> list[int]:
        if any(b <= a for a, b in itertools.pairwise(value)):
            raise ValueError("must rise from one look to the next")
        return value


class OutputModel(Section):
    """`output:`.

    Attributes:
        path: the folder for all results.
        rankings: whether the rankings themselves are written, not only their scores. By default those are that were
            asked for; those of an existing run stand in its file.
        ledger: the folder that keeps the answers of remote services, so that none is paid for twice; experiments may
            share one. "user" names one for all runs of the user, in the user's data folder. By default the folder that
            RANKBEAM_LEDGER names, else `ledger` below `path`. With a ledger for all runs, answers in `ledger` below
            `path` are read as well.
        leases: where runs note which of them makes the calls of a quota pool: "ledger", or "user" for one folder of the
            user, so that runs with different ledgers keep one quota together.
        private: only the owner may read the folders and files that are written, ledger and results; else the umask
            decides.
        bigquery: the dataset, project.dataset, that the run is loaded into when all its files are written.
    """

    path: Word
    rankings: bool | None = None
    ledger: Word | None = None
    leases: Literal["ledger", "user"] = "ledger"
    private: bool = False
    bigquery: Word | None = None


Swept = Annotated[
    list[Any],
    BeforeValidator(values_of),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {}}, {"type": "object", "additionalProperties": {}}]}),
]
"""The values of a parameter of the grid: a list, or values by labels."""


class ExperimentModel(Section):
    """The whole file.

    Attributes:
        name: of the experiment.
        dataset: what is asked and judged.
        configurations: the systems under test.
        grid: parameters and their values, a list or values by labels, which stand for long ones in names
            (`corpus: {small: projects/…}`); every configuration is repeated for each combination. `top_k` and
            `vector_distance_threshold` cost no further calls.
        services: models that answer and judge, each named once: its type and that type's parameters.
        corpora: what the documents are cut into, each named once: its type and that type's parameters. A retriever
            searches one that it names: `corpus: NAME`; without it, the documents themselves.
        quotas: budgets of remote services, by name, as `QuotaModel` describes them; those of building corpora are
            called `rag_engine_data` and `rag_engine_import`.
        judge: the model that judges answers and contexts, as `JudgeModel` describes it.
        max_cost: of all calls of one run to services together, in the currency of the prices under `quotas:`, which
            then have to be there. What is planned to cost more at the least is refused; a call that might cost more
            than is left is not made, and the run ends with status 3.
        max_failure_rate: the share of a configuration's rankings, answers or values of a metric that may fail (0 to 1);
            above it, exit status 3.
        metrics: names, as ir_measures or trec_eval write them.
        slices: attributes of queries to average by, besides all queries; `intent×difficulty` crosses two.
        statistics: how intervals and comparisons are made.
        ties: also find how far each value depends on the order of documents with equal scores.
        dialects: tools by whose rules every configuration is scored, side by side.
        race: when configurations that cannot be the best are dropped, as `RaceModel` describes it; by default never.
        baseline: name of the configuration the others are compared with; the first by default.
        gates: thresholds that the results must keep; else exit status 3.
        output: where results go; `--output` may say it instead.
    """

    name: Word
    dataset: DatasetModel
    configurations: Annotated[list[ConfigurationModel], Field(min_length=1)]
    grid: dict[str, Swept] = Field(default_factory=dict)
    services: dict[str, Any] = Field(default_factory=dict)
    corpora: dict[str, Any] = Field(default_factory=dict)
    quotas: dict[str, Any] = Field(default_factory=dict)
    judge: JudgeModel | None = None
    max_cost: Price | None = None
    max_failure_rate: Annotated[float, Field(ge=0.0, le=1.0)] = 0.05
    metrics: Annotated[list[str], Field(min_length=1)] = list(DEFAULT_METRICS)  # noqa: RUF012  pydantic copies it
    slices: list[str] = Field(default_factory=list)
    statistics: StatisticsModel = Field(default_factory=StatisticsModel)
    ties: bool = False
    dialects: list[str] = Field(default_factory=list)
    race: RaceModel | None = None
    baseline: str | None = None
    gates: list[GateModel] = Field(default_factory=list)
    output: OutputModel

    @field_validator("slices", "dialects")
    @classmethod
    def _once(cls, value: list[str], info: ValidationInfo) -> list[str]:
        value = [canonical(each) for each in value] if info.field_name == "slices" else value
        if len(set(value)) != len(value):
            raise ValueError("names an attribute twice" if info.field_name == "slices" else "names a dialect twice")
        return value
