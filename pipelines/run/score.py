"""`rankbeam score`: the experiment behind a trec_eval-like command line."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Annotated, Literal

import yaml
from pydantic import Field

from rankbeam.pipelines.config.sections import Section
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.experiment.load import parse_experiment
from rankbeam.transforms.clients.formats import rows, sources
from rankbeam.transforms.clients.storage import files, parquet
from rankbeam.transforms.records.errors import InputError, InputErrors
from rankbeam.transforms.records.metrics.names import Metric
from rankbeam.transforms.records.metrics.trec_names import parse_metrics
from rankbeam.transforms.records.metrics.values import DEFAULT_METRICS as SPAN_DEFAULTS

DEFAULT_METRICS = ("nDCG@10", "P@10", "R@100", "RR", "AP")


class ScoreOptions(Section):
    """The options of the command."""

    metrics: tuple[str, ...] = ()
    relevance_level: Annotated[float, Field(gt=0)] | None = None  # the lowest relevant grade; None means 1
    max_documents: Annotated[int, Field(ge=1)] | None = None  # score only this many per query; None means all
    judged_only: bool = False
    duplicates: Literal["refuse", "collapse"] = "refuse"
    ties: bool = False
    dialects: tuple[str, ...] = ()
    replicates: Annotated[int, Field(ge=0, le=100_000)] = 1000  # with 0, there are no simultaneous intervals
    confidence: Annotated[float, Field(ge=0.5, lt=1.0)] = 0.95
    all_pairs: bool = False
    corpus: str | None = None
    unit: Literal["document", "chunk"] | None = None  # the kind of item that is judged; None if not stated

    @property
    def treatment(self) -> str:
        """Treatment of an id that occurs twice in one ranking; "collapse" keeps its best rank."""
        return "collapse" if self.unit == "document" else self.duplicates


def scoring_experiment(
    qrels: str, runs: Sequence[str], output: str, options: ScoreOptions, names: Sequence[str] | None = None
) -> Experiment:
    spans = are_spans(qrels)
    if options.unit is not None and spans:
        raise InputError("evidence spans judge chunks of any size; remove --unit", path=qrels)
    if options.unit == "chunk" and options.duplicates == "collapse":
        raise InputError("--unit chunk judges every chunk, and --duplicates collapse drops some; remove one of them")
    defaults = SPAN_DEFAULTS if spans else DEFAULT_METRICS
    metrics = [_with(metric, options) for metric in _metrics(options.metrics or defaults)]
    configurations = []
    for name, path in zip(names_of(runs) if names is None else names, runs, strict=True):
        retriever = {"type": "run_file", "path": files.absolute(path), "duplicates": options.treatment}
        configurations.append({"name": name, "retriever": retriever, "top_k": options.max_documents})
    experiment = {
        "name": "score",
        "dataset": _dataset(qrels, spans, options.corpus) | ({} if options.unit is None else {"unit": options.unit}),
        "configurations": configurations,
        "metrics": [str(metric) for metric in metrics],
        "ties": options.ties,
        "dialects": [name.strip() for name in ",".join(options.dialects).split(",") if name.strip()],
        "statistics": {
            "replicates": options.replicates,
            "confidence": options.confidence,
            "pairs": "all" if options.all_pairs else "baseline",
        },
        "output": {"path": files.absolute(output), "rankings": False},
    }
    return parse_experiment(yaml.safe_dump(experiment, sort_keys=False, allow_unicode=True), None)


def are_spans(qrels: str) -> bool:
    """Return whether judgements are evidence spans: JSON lines or Parquet with document and quote."""
    try:
        head = files.read_head(files.absolute(qrels)).lstrip() if files.is_local(qrels) else b""
        if head.startswith(b"PAR1"):
            with parquet.open_file(files.absolute(qrels)) as file:
                return {"start", "end", "quote"} <= {*file.schema_arrow.names}
    except InputError:
        return False  # reported when the file is checked
    first = head.partition(b"\n")[0]
    return first.startswith(b"{") and b'"doc_id"' in first and (b'"quote"' in first or b'"start"' in first)


def _dataset(qrels: str, spans: bool, corpus: str | None) -> dict[str, str]:
    if corpus is not None and not spans:
        raise InputError(
            "--corpus is for evidence spans (JSON lines or Parquet); these judgements are of documents", path=qrels
        )
    if not spans:
        return {"qrels": files.absolute(qrels)}
    documents = {} if corpus is None else {"corpus": files.absolute(corpus)}
    return {"evidence": files.absolute(qrels), "unit": "span", **documents}


def tags(experiment: Experiment) -> dict[str, str]:
    """The tag in each run file, by configuration name; runs without a tag are left out."""
    by_name = {}
    for configuration in experiment.evaluation.configurations:
        path = experiment.evaluation.sources[configuration.source].path
        tag = None if path is None else rows.run_tag(sources.expand(path)[0])
        if tag is not None:
            by_name[configuration.name] = tag
    return by_name


def _metrics(names: Sequence[str]) -> list[Metric]:
    metrics: dict[Metric, None] = {}
    problems = []
    for name in names:
        try:
            metrics |= dict.fromkeys(parse_metrics([name]))
        except InputError as error:
            problems.append(error)
    if problems:
        raise InputErrors(problems)
    return list(metrics)


def _with(metric: Metric, options: ScoreOptions) -> Metric:
    if options.relevance_level is not None:
        metric = metric.with_default("rel", options.relevance_level)
    return replace(metric, judged_only=metric.judged_only or options.judged_only)


def names_of(paths: Sequence[str]) -> list[str]:
    """File names without their endings if these are unique, else the paths."""
    stems = [PurePosixPath(path).name for path in paths]
    for ending in (".gz", ".parquet", ".json", ".jsonl", ".csv", ".tsv", ".run", ".txt", ".trec"):
        stems = [stem.removesuffix(ending) or stem for stem in stems]
    counts = Counter(stems)
    return [stem if counts[stem] == 1 else path for stem, path in zip(stems, paths, strict=True)]
