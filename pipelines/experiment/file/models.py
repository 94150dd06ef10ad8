"""The schema of an experiment file: its keys, their types and their defaults."""

import itertools
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Field,
    FiniteFloat,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from rankbeam.pipelines.config.sections import Count, Positive, Price, Section, Word
from rankbeam.pipelines.experiment.file.judge import JudgeModel
from rankbeam.pipelines.experiment.file.output import OutputModel
from rankbeam.pipelines.experiment.file.traces import TracesModel
from rankbeam.pipelines.gates.gates import GateModel
from rankbeam.transforms.clients.bigquery.locations import Location
from rankbeam.transforms.records.conversations import CONVERSATION
from rankbeam.transforms.records.holes import LEAST_AUDITED, LLM, MOST_AUDITED
from rankbeam.transforms.records.metrics.names import DEFAULT_METRICS
from rankbeam.transforms.records.race import ALPHA
from rankbeam.transforms.records.slices import CROSS, canonical

TOP_K, DISTANCE, MIN_SCORE = "top_k", "vector_distance_threshold", "min_score"
SPAN = "span"


def _labelled(swept: Any) -> Any:
    """Values with their labels, which replace long values in names; by default a value is its own label.

    >>> _labelled({"small": "projects/p/c/1"}), _labelled([5, 10])
    ([('small', 'projects/p/c/1')], [('5', 5), ('10', 10)])
    """
    if isinstance(swept, dict):
        return [(str(label), value) for label, value in swept.items()]
    return [(str(value), value) for value in swept] if isinstance(swept, list) else swept


Swept = Annotated[
    list[tuple[str, Any]],
    BeforeValidator(_labelled),
    WithJsonSchema({"anyOf": [{"type": "array", "items": {}}, {"type": "object", "additionalProperties": {}}]}),
]
"""The values of a parameter of the grid, each with its label."""


class ReferencesModel(Section):
    """`dataset.answers`: the name of an attribute, or a mapping with one of these keys.

    Attributes:
        attribute: query attribute that contains the reference answer.
        path: file of JSON lines {query_id, answer, answerable?, nuggets?: [{text, vital}]}.
    """

    bare: ClassVar[tuple[str, type] | None] = ("attribute", str)

    attribute: Word | None = None
    path: Word | None = None

    @model_validator(mode="after")
    def _one_place(self) -> "ReferencesModel":
        if (self.attribute is None) == (self.path is None):
            raise ValueError("is an attribute of the queries, or a mapping with path; give one of them")
        return self


class HolesModel(Section):
    """`dataset.qrels_holes`: a mapping with these keys, or `llm` for their defaults.

    Attributes:
        depth: number of top documents per query that the judge grades for each configuration.
        grades: human grades that correspond to the judge's grades 0 to 3, such as [0, 0, 1, 2]. By default, 2 is the
            judge's lowest relevant grade, and the highest human grade (1, 2 or 3) determines the scale.
        audit: maximum number of documents graded by both people and judge that are used to audit the judge. The random
            draw takes about equally many of each of the judge's grades, and is the same in every run.
    """

    depth: Annotated[int, Field(ge=1)] = 10
    grades: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=4, max_length=4)] | None = None
    audit: Annotated[int, Field(ge=LEAST_AUDITED)] = MOST_AUDITED

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        if isinstance(value, str) and value != LLM:
            raise ValueError(f"is {LLM}, or a mapping with depth, grades and audit")
        return {} if value == LLM else value

    @model_validator(mode="after")
    def _rising(self) -> "HolesModel":
        if self.grades is not None and self.grades != sorted(self.grades):
            raise ValueError("grades decrease; write four whole numbers in ascending order, such as [0, 0, 1, 2]")
        return self


class DatasetModel(Section):
    """`dataset:`, with paths relative to the experiment file or on any Beam filesystem.

    Each path can also be a BigQuery table or view, `bigquery://project.dataset.table`, or a mapping with `query`,
    `project` and `parameters`; columns have the same names as in Parquet files.

    Attributes:
        qrels: relevance judgements as TREC, BEIR or Parquet files; required by ranking metrics.
        queries: queries as JSON lines, TREC topics or Parquet; required unless all configurations are existing runs.
        corpus: documents as JSON lines, tab-separated text or Parquet, or a folder of text, Markdown, HTML, DOCX and
            PDF files, local or, as {folder, glob}, in a bucket; required by retrievers that index them, and by models
            that read the documents of a run that contains only their ids.
        answers: reference answers.
        qrels_holes: let the judge grade documents that people did not judge, and compute metrics with these holes
            filled (`nDCG(holes=llm)@10`) beside the metrics from human judgements alone.
        evidence: judgements for `unit: span`, as JSON lines or Parquet with query_id, doc_id, start, end, quote and
            optionally group and grade. [start, end) counts code points of the document's text. Every quote is checked
            against the corpus.
        unit: kind of item that a judgement refers to. With "document", several chunks of one document count once, at
            their best rank. With "chunk", every id names one chunk and may occur only once in a ranking. With "span",
            chunks are judged by the evidence that they overlap, however documents are cut.
        file: file of questions and answers instead of the files above, as JSON lines, JSON, CSV or Parquet. Files of
            ragas, DeepEval, promptfoo and other tools are recognised by their keys.
        columns: keys or JMESPath expressions for `id`, `question`, `answer`, `contexts`, `context_ids`, `reference`,
            `relevant` and `config` in a row of that file, if rankbeam does not recognise them.
        groups: with "flatten", alternatives among the relevant documents in that file all count as relevant. By default
            they are refused.
        conversations: if true, queries are turns of conversations: they have the attribute `conversation` and, after
            the first turn, `history`, a list of messages with `role` and `text`. Intervals and tests count
            conversations, unless `statistics.cluster` names another attribute, and requests to applications must
            contain the history.
        traces: production traces instead of files: a path, or a mapping with the keys below. The queries are the users'
            questions, and a configuration with `answers: {type: traces}` has the recorded answers.
        goldens: folder of a benchmark made by `rankbeam goldens`, instead of the files above.
        beir: name of a BEIR collection, such as `fiqa`, instead of files. It is downloaded once, into the folder named
            by RANKBEAM_COLLECTIONS or else into ~/.cache/rankbeam/collections. `./folder` is a folder with its layout.
        ir_datasets: name of a collection in the ir_datasets library, such as `beir/fiqa/test`, instead of files. It is
            downloaded once and requires `rankbeam[ir-datasets]`.
        split: part of the benchmark or of the BEIR collection to use; `test` by default.
    """

    qrels: Location | None = None
    queries: Location | None = None
    corpus: Location | None = None
    answers: ReferencesModel | None = None
    qrels_holes: HolesModel | None = None
    evidence: Location | None = None
    unit: Literal["document", "chunk", "span"] = "document"
    file: Word | None = None
    columns: dict[str, str] = Field(default_factory=dict)
    groups: Literal["flatten"] | None = None
    conversations: bool = False
    traces: TracesModel | None = None
    goldens: Word | None = None
    beir: Word | None = None
    ir_datasets: Word | None = None
    split: Word | None = None

    @model_validator(mode="after")
    def _split_of_goldens(self) -> "DatasetModel":
        if self.split is not None and self.goldens is None:
            raise ValueError("has a split, but neither goldens nor beir; only a benchmark has splits")
        if self.file is None and (self.columns or self.groups is not None):
            raise ValueError("has columns or groups, which describe the rows of file, but no file")
        return self


class ConfigurationModel(Section):
    """One item of `configurations:`.

    Attributes:
        name: unique name that tables and reports show.
        retriever: a `type` and that type's parameters.
        rewrite: the model that rewrites the query for the retriever. Reranker, generator and judge see the original
            query.
        rerank: the service that reorders the retriever's first `depth` results: a `type` and that type's parameters, or
            {service: NAME} for a model under `services:` that rates each of them. `top_k` results remain.
        answers: source of answers, instead of a retriever: a file, {type: replay, path} (by default the dataset's
            `file`), production traces, {type: traces}, or a deployed application to call, {type: http},
            {type: openai_chat} or {type: adk}.
        generate: the model that answers from the top results.
        top_k: number of results per query.
        vector_distance_threshold: maximum distance of a result, for retrievers whose scores are distances. It may also
            be written inside `retriever:`. It cannot be combined with a similarity threshold.
        min_score: minimum score of a result, for all other retrievers; results with a lower score are left out. A
            reranker gets the results that remain.
    """

    name: Word
    retriever: dict[str, Any] | None = None
    rewrite: dict[str, Any] | None = None
    rerank: dict[str, Any] | None = None
    answers: dict[str, Any] | None = None
    generate: dict[str, Any] | None = None
    top_k: Count | None = None
    vector_distance_threshold: Positive | None = None
    min_score: FiniteFloat | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> "ConfigurationModel":
        if self.retriever is None and self.answers is None:
            raise ValueError("has neither a retriever nor existing answers; add one of them")
        others = (self.retriever, self.rewrite, self.rerank, self.generate)
        if self.answers is not None and any(component is not None for component in others):
            raise ValueError("has existing answers, and keys that would generate others; keep one")
        return self


class StatisticsModel(Section):
    """`statistics:`, the settings for intervals and comparisons.

    Attributes:
        replicates: number of bootstrap replicates. With 0, intervals of differences are Student's, and there are no
            simultaneous intervals.
        confidence: confidence level of intervals.
        seed: random seed of the bootstrap weights and of the signs in the randomisation test.
        pairs: pairs of configurations to compare. "baseline" compares every configuration with the baseline, "all" also
            compares them with each other.
        min_slice: minimum number of queries for intervals and comparisons of a slice; smaller slices have means only.
        cluster: attribute of queries that belong together, such as the turns of one conversation or the questions about
            one document. Intervals and tests then count clusters, not queries.
    """

    replicates: Annotated[int, Field(ge=0, le=100_000)] = 1000
    confidence: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.95
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    pairs: Literal["baseline", "all"] = "baseline"
    min_slice: Count = 10
    cluster: Word | None = None


class RaceModel(Section):
    """`race:`, the rules for dropping configurations that can no longer be the best.

    After each look, configurations that are significantly worse than the best are dropped. Over all looks together, the
    best is dropped with a probability of at most `alpha`. A race needs the bootstrap (`statistics.replicates`).

    Attributes:
        metric: metric by which configurations are compared; one of `metrics`.
        alpha: highest acceptable probability of dropping the best configuration.
        looks: numbers of queries after which configurations can be dropped. Queries are ordered by a hash of their ids.
    """

    metric: Word
    alpha: Annotated[float, Field(gt=0.0, lt=0.5)] = ALPHA
    looks: Annotated[list[Count], Field(min_length=1)] = [50, 100, 200, 350, 550, 1000]  # noqa: RUF012  pydantic copies it

    @field_validator("looks")
    @classmethod
    def _ascending(cls, value: list[int]) -> list[int]:
        if any(b <= a for a, b in itertools.pairwise(value)):
            raise ValueError("must increase from one look to the next")
        return value


class MonitorModel(Section):
    """`monitor:`, the pinned run that later runs are compared with, night after night.

    Attributes:
        baseline: id of the baseline run, in the same output folder; by default the experiment's first run.
        alpha: probability of a false alarm within 90 nights of fresh queries.
    """

    baseline: Word | None = None
    alpha: Annotated[float, Field(gt=0.0, lt=0.5)] = 0.05


class ExperimentModel(Section):
    """The whole file.

    Attributes:
        name: name of the experiment.
        dataset: queries, judgements and documents.
        configurations: the systems under test.
        grid: parameters to sweep, each with a list of values. Every configuration is repeated for each combination. A
            mapping of labels to values (`corpus: {small: projects/…}`) keeps long values out of names. `top_k`,
            `vector_distance_threshold` and `min_score` cost no additional calls.
        services: models that answer, judge or embed. Each has a name, a `type` and that type's parameters.
        corpora: chunked copies of the documents. Each has a name, a `type` and that type's parameters. A retriever with
            `corpus: NAME` searches that corpus; a local one without `corpus` searches whole documents.
        quotas: budgets of remote services, by name. The names `rag_engine_data` and
            `rag_engine_import` are the budgets for building corpora.
        judge: the model that judges answers and contexts.
        max_cost: maximum total cost of one run's service calls, in the currency of the prices under `quotas:` (required
            when this is set). An experiment whose lowest forecast is higher is refused. During the run, a call that
            might exceed the remaining budget is not made, and the run ends with status 3.
        max_failure_rate: highest acceptable share (0 to 1) of failed rankings, answers or metric values of a
            configuration. Above it, the run ends with status 3.
        metrics: names of metrics, as ir_measures or trec_eval write them.
        slices: query attributes to report means for, besides all queries; `intent×difficulty` crosses two attributes,
            and `rank(ContextRR)` or `rank(RR)` groups each configuration's queries by the rank of the first hit.
        statistics: settings for intervals and comparisons.
        ties: if true, also report how far each value depends on the order of documents with equal scores.
        dialects: tools whose scoring rules are applied side by side to every configuration.
        race: rules for dropping configurations that can no longer be the best. By
            default none is dropped.
        fresh: "daily" makes the date (UTC) part of the identity of retrieval calls and answers, so that each day
            repeats the calls and sees changes in the services. Verdicts on equal texts are still bought once. By
            default answers in the ledger never expire.
        monitor: baseline run of `rankbeam monitor` and of gates on the value `monitor`.
        baseline: name of the configuration that the others are compared with; by default the first one.
        decide_by: metric of the decision that the report begins with; by default the first one.
        gates: thresholds that the results must meet; otherwise the run ends with status 3.
        output: location of the results, by default out/NAME beside the file; the option `--output` overrides it.
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
    fresh: Literal["daily"] | None = None
    monitor: MonitorModel | None = None
    baseline: str | None = None
    decide_by: str | None = None
    gates: list[GateModel] = Field(default_factory=list)
    output: OutputModel

    @model_validator(mode="after")
    def _clusters_of_conversations(self) -> "ExperimentModel":
        dataset, statistics = (self.__dict__.get(name) for name in ("dataset", "statistics"))  # absent if refused
        if isinstance(dataset, DatasetModel) and dataset.conversations and isinstance(statistics, StatisticsModel):
            self.statistics = statistics.model_copy(update={"cluster": statistics.cluster or CONVERSATION})
        return self

    @field_validator("slices", "dialects")
    @classmethod
    def _once(cls, value: list[str], info: ValidationInfo) -> list[str]:
        value = [canonical(item) for item in value] if info.field_name == "slices" else value
        if len(set(value)) != len(value):
            raise ValueError("names an attribute twice" if info.field_name == "slices" else "names a dialect twice")
        if crossed := [item for item in value if CROSS in item and "rank(" in item]:
            raise ValueError(f"slices by rank cannot be crossed with others: {crossed[0]}")
        return value
