"""Cost forecast: enumerate the calls that `evaluate` would make."""

import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apache_beam as beam

from rankbeam.pipelines.config.yaml_lines import load
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.pools import too_large
from rankbeam.pipelines.local.runner import on_this_machine, quiet_beam, refusals
from rankbeam.pipelines.plan.corpora import CorpusPlan, TablePlan, corpora_plan, table_plans
from rankbeam.pipelines.plan.counting import CallCounts
from rankbeam.pipelines.plan.pools import (
    PoolPlan,
    Range,
    format_range,
    lines_of,
    pool_plans,
    retriever_line,
    total_cost,
)
from rankbeam.pipelines.plan.simulation import AgainPlan, again_plans
from rankbeam.pipelines.plan.stages import (
    CountOutputs,
    WriteCounts,
    add_known_rankings,
    count_calls,
    count_models,
    count_reranking,
    count_rewriting,
    count_texts,
    distinct_batches,
    read_counted,
)
from rankbeam.pipelines.run.answers import work_of
from rankbeam.pipelines.run.branches import Branches, with_joined
from rankbeam.pipelines.run.build import new_pipeline, read_dataset
from rankbeam.pipelines.run.calling import query_embedders, retrieve_stage, tasks_to_do
from rankbeam.pipelines.run.options import pipeline_options
from rankbeam.pipelines.show.tabular import WHOLE, Screen, Table
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import InputErrors, pluralize
from rankbeam.transforms.records.metrics.evaluation import Configuration
from rankbeam.transforms.records.stages import RERANK, ablations

_UNKNOWN = (
    "{:,} queries have no rankings yet from remote retrievers or embeddings: calls to models are counted with imagined "
    "contexts, either equal for all retrievers (least) or different for each (most)"
)
_UNPRICED = "no price for {}: write price_per_million: {{input: …, output: …}} under quotas, and plan shows the cost"


@dataclass(frozen=True)
class ConfigurationPlan:
    """Origin of one configuration's rankings."""

    name: str
    source: str


@dataclass(frozen=True)
class Plan:
    """Forecast of an experiment."""

    pools: tuple[PoolPlan, ...]  # of retrievers
    configurations: tuple[ConfigurationPlan, ...]
    warnings: tuple[str, ...] = ()
    models: tuple[PoolPlan, ...] = ()
    max_cost: float | None = None  # None for no limit
    corpora: tuple[CorpusPlan, ...] = ()
    race: str = ""
    queries: int | None = None  # None if nothing is called
    least_share: float = 1.0
    proposals: tuple[str, ...] = ()
    again: tuple[AgainPlan, ...] = ()
    tables: tuple[TablePlan, ...] = ()

    @property
    def cost(self) -> Range | None:
        """Lowest and highest cost of all calls; None if a price is unknown. A race saves no corpora."""
        calls = total_cost(self.every_pool)
        corpora = [corpus.cost for corpus in self.corpora if corpus.state]
        imports = [cost for cost in corpora if cost is not None]
        if calls is None or len(imports) < len(corpora) or not (self.every_pool or corpora):
            return None
        return calls[0] * self.least_share + sum(imports), calls[1] + sum(imports)

    @property
    def every_pool(self) -> tuple[PoolPlan, ...]:
        return *self.pools, *self.models

    def as_document(self) -> dict[str, Any]:
        return {**asdict(self), "pools": [_retriever_document(pool) for pool in self.pools], "cost": self.cost}

    def as_text(self, screen: Screen = WHOLE) -> str:
        pools = [retriever_line(pool) for pool in self.pools]
        models = [line for model in self.models for line in lines_of(model)]
        lines = [*pools, *models] or ["no remote calls"]
        lines += (again.line() for again in self.again)
        paid = len(pools) + len(self.models) + sum(bool(corpus.documents) for corpus in self.corpora)
        if paid > 1 and self.cost is not None:
            lines.append(f"together: cost {format_range(self.cost, '{:,.2f}')}")
        unpriced = [pool.pool for pool in self.models if pool.cost is None]
        lines += [_UNPRICED.format(", ".join(unpriced))] if unpriced else []
        if self.max_cost is not None:
            lines.append(f"max_cost: {self.max_cost:,.2f}")
        lines += [self.race] if self.race else []
        lines += [corpus.line() for corpus in self.corpora]
        lines += [table.line() for table in self.tables]
        lines += self.proposals
        sources = Table(
            ["configuration", "rankings"],
            [(configuration.name, configuration.source) for configuration in self.configurations],
            2,
        )
        return "\n".join([*(screen.prose(line, indent="    ") for line in lines), "", screen.table(sources)])


def plan_of(experiment: Experiment, path: str | None = None) -> Plan:
    """Forecast an experiment from its queries, its judgements and the ledger."""
    corpora, experiment, corpus_warnings = corpora_plan(experiment)
    experiment = replace(experiment, computes=False)
    configurations = configuration_plans(experiment)
    if not experiment.makes_calls and not experiment.embedders and not work_of(experiment).services:
        return Plan((), configurations, corpora=corpora, tables=table_plans(experiment))
    counted, counted_documents, queries = _run_counting(experiment)
    if counted.largest:
        _refuse_too_large(experiment, counted, path)
    plans = pool_plans(counted, experiment.calls)
    warnings = dict.fromkeys(corpus_warnings) | counted.warnings
    if counted.unknown:
        warnings[_UNKNOWN.format(counted.unknown)] = None
    race = experiment.evaluation.race
    documents = pool_plans(counted_documents, experiment.calls)
    return Plan(
        tuple(plan for plan in plans if plan.steps[0].service in counted.pools),
        configurations,
        tuple(warnings),
        tuple(plan for plan in plans if plan.steps[0].service not in counted.pools),
        experiment.calls.max_cost,
        corpora,
        "" if race is None else race.described(queries, _share_of_calls(experiment, queries, plans, documents)),
        queries,
        _least_share(experiment, queries, plans, documents),
        proposals(experiment, queries),
        again_plans(counted.again),
        table_plans(experiment),
    )


def _least_share(
    experiment: Experiment, queries: int, plans: Sequence[PoolPlan], documents: Sequence[PoolPlan]
) -> float:
    """Share of the remaining calls' cost that a race pays before it drops anything.

    It contains the embeddings of all documents, and the calls for the first queries unless the race has started.
    """
    race = experiment.evaluation.race
    first = None if race is None else next(race.schedule(queries), None)
    if first is None:
        return 1.0
    is_begun = sum(plan.ledger_hits for plan in plans) > sum(plan.ledger_hits for plan in documents)
    share = 0.0 if is_begun else first.queries / queries
    total, fixed = total_cost(plans), total_cost(documents)
    of_documents = fixed[0] / total[0] if total is not None and fixed is not None and total[0] else 0.0
    return share + (1.0 - share) * of_documents


def _share_of_calls(
    experiment: Experiment, queries: int, plans: Sequence[PoolPlan], documents: Sequence[PoolPlan]
) -> float:
    """Share of the remaining calls that a race cannot save.

    They are the calls before its first look, the embeddings of all documents, and for each later query one embedding,
    one call to a retriever and one for an answer, if every configuration needs one.
    """
    race, evaluation = experiment.evaluation.race, experiment.evaluation
    first = None if race is None else next(race.schedule(queries), None)
    hits = sum(plan.ledger_hits for plan in plans)
    total = sum(plan.calls[1] for plan in plans)
    if first is None or total == hits:
        return 1.0
    fixed = sum(plan.calls[1] for plan in documents)
    before = fixed + (total - fixed) * first.queries / queries
    embedders = {source for _, sources, _ in query_embedders(experiment) for source in sources}
    origins = [evaluation.origins(one.source) for one in evaluation.configurations]
    embeds, retrieves = (all(map(sources.intersection, origins)) for sources in (embedders, {*experiment.remote}))
    answers = all(one.generation is not None for one in evaluation.configurations)
    after = (embeds + retrieves + answers) * (queries - first.queries)
    return min(max(before + after - hits, 0.0) / (total - hits), 1.0)


def _refuse_too_large(experiment: Experiment, counted: CallCounts, path: str | None) -> None:
    largest: dict[str, int] = {}
    for service, tokens in counted.largest.items():
        pool = experiment.calls.services[service].pool or ""
        largest[pool] = max(tokens, largest.get(pool, 0))
    problems = list(too_large(load(experiment.text, path), largest, experiment.calls.pools, experiment.calls.budgets))
    if problems:
        raise InputErrors(problems)


def _run_counting(experiment: Experiment) -> tuple[CallCounts, CallCounts, int]:
    """Count all calls, and those that embed documents; also return the number of queries."""
    experiment = experiment.pinned(f"plan {secrets.token_hex(8)}", f"{datetime.now(UTC):%Y-%m-%d}")
    options = pipeline_options([])
    with (
        tempfile.TemporaryDirectory(prefix="rankbeam-plan-") as folder,
        quiet_beam(),
        refusals(),
        on_this_machine(options),
    ):
        pipeline = new_pipeline(options)
        dataset = read_dataset(pipeline, experiment)
        tasks, rewritten, branches = None, None, Branches()
        counts: CountOutputs = []
        if experiment.rewritten:
            rewritten = count_rewriting(experiment, dataset, branches, counts)
        rewritten = with_joined(experiment, dataset, rewritten)
        branches.rewritten = with_joined(experiment, dataset, branches.rewritten, "Known")
        if experiment.remote:
            stage = retrieve_stage(experiment)
            questions, _ = tasks_to_do(dataset.judged, experiment, rewritten)
            tasks = distinct_batches(questions, stage)
            count_calls(tasks, stage, experiment, counts)
        queries_file = Path(folder) / "asked"
        _ = (
            dataset.judged
            | "Asked" >> beam.Map(lambda element: element[1].num_rows)
            | "AllAsked" >> beam.CombineGlobally(sum)
            | "WriteAsked" >> beam.Map(lambda number: queries_file.write_text(str(number)))
        )
        total, documents = (str(Path(folder) / name) for name in ("counts", "documents"))
        if experiment.embedders:
            of_documents = count_texts(pipeline, experiment, dataset, rewritten, counts)
            if experiment.evaluation.race is not None:
                _ = of_documents | "WriteDocuments" >> WriteCounts(experiment, documents)
        if experiment.rerankers or work_of(experiment).services:
            add_known_rankings(pipeline, experiment, dataset, tasks, branches)
            if experiment.rerankers:
                count_reranking(experiment, dataset, branches, counts)
            if work_of(experiment).services:
                count_models(experiment, dataset, branches, counts)
        if counts:
            _ = counts | "EveryCount" >> beam.Flatten() | "WriteTotal" >> WriteCounts(experiment, total)
        pipeline.run().wait_until_finish()
        counted, counted_documents = (
            read_counted(file) if Path(file).exists() else CallCounts() for file in (total, documents)
        )
        return counted, counted_documents, int(queries_file.read_text())


def number_of_queries(experiment: Experiment) -> int:
    return _run_counting(experiment)[-1]


def _retriever_document(plan: PoolPlan) -> dict[str, Any]:
    """The JSON of a pool of retrievers, whose calls are all known in advance."""
    return {
        "pool": plan.pool,
        "calls": plan.calls[1],
        "ledger_hits": plan.ledger_hits,
        "requests_per_minute": plan.requests_per_minute,
        "seconds": plan.seconds[1],
        "cost": None if plan.cost is None else plan.cost[1],
    }


def configuration_plans(experiment: Experiment) -> tuple[ConfigurationPlan, ...]:
    configurations = experiment.evaluation.configurations
    names = {configuration.config_id: configuration.name for configuration in configurations}
    return tuple(
        ConfigurationPlan(configuration.name, _where_from(configuration, experiment, names))
        for configuration in configurations
    )


def proposals(experiment: Experiment, queries: int) -> tuple[str, ...]:
    """Suggest missing configurations that would show a stage's gain, each with its additional calls."""
    configurations = experiment.evaluation.configurations
    known = {configuration.parameters for configuration in configurations}
    missing = grouped(
        (counterpart, configuration)
        for configuration in configurations
        for counterpart in ablations(configuration.parameters)
        if counterpart[1] not in known
    )
    return tuple(
        f"{group[0].name}{f' (and {len(group) - 1} more)' if group[1:] else ''}: the same configuration without "
        f"{stage}: is missing; to see the gain of the stage, also evaluate `{stage}: null` "
        f"({_further_calls(group[0], stage, experiment, queries)})"
        for (stage, _), group in missing.items()
    )


def _further_calls(configuration: Configuration, stage: str, experiment: Experiment, queries: int) -> str:
    """Additional calls for rankings without a stage: the retriever's, unless they are made anyway."""
    evaluation = experiment.evaluation
    answer_calls = f", and those of {configuration.name} for answers" if configuration.generation is not None else ""
    origins = evaluation.origins(configuration.source)
    is_asked = any(source not in experiment.rewritten for source in origins & experiment.remote.keys())
    pools = {evaluation.sources[source].pool for source in origins & experiment.remote.keys()}
    if stage == RERANK or is_asked or not pools:
        return f"no further calls for its rankings{answer_calls}"
    (pool,) = pools
    quota = experiment.calls.pools[pool or ""]  # tokens of retrievers are not forecast
    price = "" if quota.price_per_1000 is None else f", cost {quota.price_per_1000 * queries / 1000:,.2f}"
    return f"{pluralize(queries, 'call')} of {pool}{price}{answer_calls}"


def _where_from(configuration: Configuration, experiment: Experiment, names: dict[str, str]) -> str:
    source = experiment.evaluation.sources[configuration.source]
    if configuration.derived_from is not None:
        return f"derived from {names[configuration.derived_from]}"
    if source.fusion is not None:
        rewrites = [experiment.rewritten[part] for part in source.origins if part in experiment.rewritten]
        return f"fused over texts by {rewrites[0].rewriting.service}" if rewrites else "fused from others"
    if source.replayed and source.pool is None:
        return "existing answers"
    if source.path is not None:
        return f"read from {source.path}"
    if source.rerank is not None:
        reranker = experiment.rerankers[configuration.source]
        return f"first {source.rerank.depth} results reranked by {reranker.service_name}"
    rewrite = "" if source.rewrite is None else f", with queries rewritten by {source.rewrite.rewriting.service}"
    corpus = experiment.sources[configuration.source].retriever.corpus
    over_corpus = "" if corpus is None else f", over {corpus.name}: {corpus.parameters.described()}"
    how = "computed in process" if source.pool is None else f"called in pool {source.pool}"
    return f"{how}{over_corpus}{rewrite}"
