"""Origins of the rankings of an experiment's configurations, as a plan shows them."""

from dataclasses import dataclass

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.transforms.records.metrics.evaluation import Configuration
from rankbeam.transforms.records.reply import NO_TOKENS
from rankbeam.transforms.records.stages import RERANK, lacking


@dataclass(frozen=True)
class ConfigurationPlan:
    """Origin of the rankings of one configuration."""

    name: str
    source: str


def configuration_plans(experiment: Experiment) -> tuple[ConfigurationPlan, ...]:
    """The origin of the rankings of every configuration."""
    configurations = experiment.evaluation.configurations
    names = {configuration.config_id: configuration.name for configuration in configurations}
    return tuple(
        ConfigurationPlan(configuration.name, _where_from(configuration, experiment, names))
        for configuration in configurations
    )


def proposals(experiment: Experiment, queries: int) -> tuple[str, ...]:
    """Missing configurations that would show what a stage adds, each with its further calls; none is added."""
    configurations = experiment.evaluation.configurations
    known = {configuration.parameters for configuration in configurations}
    return tuple(
        f"{configuration.name}: no configuration differs only in lacking its {stage}:; to see its gain, also "
        f"evaluate `{stage}: null` ({_further_calls(configuration, stage, experiment, queries)})"
        for configuration in configurations
        for stage, without in lacking(configuration.parameters)
        if without not in known
    )


def _further_calls(configuration: Configuration, stage: str, experiment: Experiment, queries: int) -> str:
    """Calls for rankings without a stage: those of the retriever, unless they are made anyway."""
    evaluation = experiment.evaluation
    others = f", and those of {configuration.name} for answers" if configuration.generation is not None else ""
    origins = evaluation.origins(configuration.source)
    is_asked = any(source not in experiment.rewritten for source in origins & experiment.remote.keys())
    pools = {evaluation.sources[source].pool for source in origins & experiment.remote.keys()}
    if stage == RERANK or is_asked or not pools:
        return f"no further calls for its rankings{others}"
    (pool,) = pools
    cost = experiment.pools[pool or ""].cost(queries, NO_TOKENS)
    price = "" if cost is None else f", cost {cost:,.2f}"
    return f"{queries:,} calls of {pool}{price}{others}"


def _where_from(configuration: Configuration, experiment: Experiment, names: dict[str, str]) -> str:
    source = experiment.evaluation.sources[configuration.source]
    if configuration.derived_from is not None:
        return f"derived from {names[configuration.derived_from]}"
    if source.fusion is not None:
        rewrites = [experiment.rewritten[part] for part in source.origins if part in experiment.rewritten]
        return f"fused of texts by {rewrites[0].rewriting.service}" if rewrites else "fused from others"
    if source.replayed and source.pool is None:
        return "answers that exist already"
    if source.path is not None:
        return f"read from {source.path}"
    if source.rerank is not None:
        reranker = experiment.rerankers[configuration.source]
        return f"first {source.rerank.depth} results reranked by {reranker.service_name}"
    rewrite = "" if source.rewrite is None else f", with queries rewritten by {source.rewrite.rewriting.service}"
    corpus = experiment.sources[configuration.source].retriever.corpus
    of_corpus = "" if corpus is None else f", over {corpus.name}: {corpus.parameters.described()}"
    where = "process" if source.pool is None else f"pool {source.pool}"
    return f"asked in {where}{of_corpus}{rewrite}"
