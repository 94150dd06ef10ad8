"""The commands that run a pipeline: evaluate and score."""

import contextlib
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankbeam.pipelines.api.jobs import refuse_second
from rankbeam.pipelines.cli.engine import on_engine
from rankbeam.pipelines.cli.group import (
    FloatRange,
    OutputFormat,
    allow_disjoint,
    main,
    own_options,
    shown_as,
    wide,
    with_standard_input,
)
from rankbeam.pipelines.cli.status import on_dataflow
from rankbeam.pipelines.local.messages import FAILED, warn

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

    from rankbeam.pipelines.experiment.experiment import Experiment
    from rankbeam.pipelines.results.run import Results
    from rankbeam.transforms.records.run import Run

_GRADE = FloatRange(min=0, min_open=True)
_COUNT = click.IntRange(min=1)
_REPLICATES = click.IntRange(0, 100_000)
_CONFIDENCE = FloatRange(0.5, 1.0, max_open=True)
_DUPLICATES = click.Choice(["refuse", "collapse"])
_PASTED = ("markdown", "latex")
_FORMATS = click.Choice(["table", "json", "csv", *_PASTED])
_SCORE_FORMATS = click.Choice(["table", "json", "csv", "trec", *_PASTED])
_METRIC_HELP = "Metric, as rankbeam or trec_eval names it: nDCG@10, map, P.5,10, all_trec. Repeatable."
_UNIT_HELP = (
    "Kind of item that a judgement refers to. With document, several chunks of a document count once, at the best rank."
)
_DUPLICATES_HELP = "If a document occurs twice for a query: refuse the run, or keep the document's best rank."
_CONFIDENCE_HELP = "Confidence level of the intervals."
_REPLICATES_HELP = "Bootstrap replicates for joint intervals and intervals of differences; 0 for none."
_DIALECT_HELP = "Score by the rules of other tools, side by side: rankbeam, trec_eval, pytrec_eval, beir, notebook."
_LEASE_HELP = "Time to wait for another run that uses the same ledger; by default until it ends. 0 refuses at once."
_WAIT_HELP = "Follow a job to its end, or leave it; by default Dataflow jobs are left, and Flink jobs are followed."
_DRY_RUN_HELP = "On Dataflow: show the job, the files that it would stage and its cost, without sending anything."
_ALL_ROWS_HELP = "On a cluster: include all rows in results.duckdb and the report, not only those of small tables."
_BEAM = {"ignore_unknown_options": True, "allow_interspersed_args": True}


@main.command(context_settings=_BEAM)
@click.argument("experiment")
@click.option("--output", metavar="DIR", help="Write to this folder instead of the experiment's output.path.")
@click.option("--run-id", metavar="ID", help="Id of the run; a second run with the same id replaces its rows.")
@click.option("--wait/--no-wait", "wait", default=None, help=_WAIT_HELP)
@click.option("--dry-run", is_flag=True, help=_DRY_RUN_HELP)
@click.option("--all-rows", is_flag=True, help=_ALL_ROWS_HELP)
@click.option("--wait-for-lease", type=FloatRange(min=0), metavar="SECONDS", help=_LEASE_HELP)
@allow_disjoint
@shown_as(_FORMATS)
@wide
@click.argument("beam_options", nargs=-1, type=click.UNPROCESSED, metavar="[BEAM OPTIONS]")
def evaluate(
    experiment: str,
    output: str | None,
    run_id: str | None,
    wait: bool | None,
    dry_run: bool,
    all_rows: bool,
    wait_for_lease: float | None,
    allow_disjoint: bool,
    form: str,
    wide: bool,
    beam_options: tuple[str, ...],
) -> None:
    """Run EXPERIMENT (a YAML file), and show its leaderboard.

    All options of Apache Beam are passed on, such as --runner or --direct_num_workers; the default runner is Beam's
    local one.

    \b
    Example:
      rankbeam evaluate examples/helpdesk/experiment.yaml --output out/helpdesk
    """
    from rankbeam.pipelines.local import overheads

    if not beam_options and overheads.needs_no_clients(output or "", experiment, overheads.experiment_text(experiment)):
        overheads.import_beam_alone()
    from rankbeam.pipelines.experiment.load import load_experiment
    from rankbeam.pipelines.plan.limits import refuse_above_budget
    from rankbeam.pipelines.run.folders import prepared_folders, refuse_elsewhere
    from rankbeam.pipelines.run.options import is_portable, pipeline_options, works_elsewhere
    from rankbeam.transforms.clients.storage import files

    _refuse_option(experiment)
    options = pipeline_options(beam_options, own_options())
    # An engine's workers have another current folder.
    place = files.absolute if is_portable(options) else str
    loaded = load_experiment(place(experiment), None if output is None else place(output))
    calls = replace(loaded.calls, wait_for_lease_s=wait_for_lease)
    loaded = replace(loaded.with_disjoint(allow_disjoint), calls=calls)
    if works_elsewhere(options):
        refuse_elsewhere(loaded)
    elif not is_portable(options):  # job servers check the variables of their workers
        warn(*(f"{unset}: answers come only from the ledger" for unset in loaded.unset_variables(experiment)))
    if dry_run:
        _describe(loaded, experiment, run_id, options, form, wide=wide)
        return
    with prepared_folders(loaded):
        warn(*refuse_above_budget(loaded, experiment))
        shown = OutputFormat(form, wide)
        _run(loaded, run_id, shown, options, beam_options, reported=True, wait=wait, all_rows=all_rows)


@main.command(context_settings=_BEAM)
@click.argument("qrels")
@click.argument("runs", nargs=-1, required=True, type=click.UNPROCESSED, metavar="RUN [RUN …]")
@click.option("-m", "--metric", "metrics", multiple=True, metavar="METRIC", help=_METRIC_HELP)
@click.option("-q", "--per-query", is_flag=True, help="Also show every query.")
@click.option("-l", "--relevance-level", type=_GRADE, metavar="GRADE", help="The lowest relevant grade (1).")
@click.option("-M", "--max-documents", type=_COUNT, metavar="N", help="Score only the first N documents per query.")
@click.option("-J", "--judged-only", is_flag=True, help="Remove documents without a judgement first.")
@click.option("-c", "--complete", is_flag=True, expose_value=False, help="Accepted for compatibility; always on.")
@click.option("--duplicates", type=_DUPLICATES, default="refuse", show_default=True, help=_DUPLICATES_HELP)
@click.option("--unit", type=click.Choice(["document", "chunk"]), help=_UNIT_HELP)
@click.option("--ties", is_flag=True, help="Also show each mean's lowest and highest value over all orders of ties.")
@click.option("--replicates", type=_REPLICATES, metavar="N", default=1000, show_default=True, help=_REPLICATES_HELP)
@click.option("--confidence", type=_CONFIDENCE, metavar="SHARE", default=0.95, show_default=True, help=_CONFIDENCE_HELP)
@click.option("--all-pairs", is_flag=True, help="Compare every pair of runs, not only each run with the first.")
@click.option("--dialect", "dialects", default="", metavar="NAME,…", help=_DIALECT_HELP)
@click.option(
    "--corpus", metavar="FILE", help="The documents that evidence quotes, to check quotes and to locate chunks."
)
@allow_disjoint
@shown_as(_SCORE_FORMATS)
@click.option("--output", metavar="DIR", help="Store the tables in this folder.")
@wide
def score(
    qrels: str,
    runs: tuple[str, ...],
    form: str,
    per_query: bool,
    allow_disjoint: bool,
    output: str | None,
    wide: bool,
    dialects: str,
    **options: Any,
) -> None:
    """Score existing runs against QRELS, like trec_eval.

    Means cover all judged queries; a query that is missing from a run scores 0 (trec_eval -c). QRELS may also be
    evidence spans (JSON lines), which judge chunks with ids such as doc#0-120. One file may be -, standard input.

    \b
    Examples:
      rankbeam score qrels.txt bm25.run dense.run -m nDCG@10 -m R@100
      rankbeam score qrels.txt bm25.run --format trec --per-query -m all_trec
      rankbeam score qrels.txt chunks.run --unit document
    """
    if per_query and form in _PASTED:
        raise click.UsageError(f"--format {form} does not show queries; use --per-query with another format")
    if output is None and sys.stdout is None:
        raise click.UsageError("stdout is closed, so without --output the results would be lost")
    from tempfile import TemporaryDirectory

    paths, beam_options = _split(runs)
    _refuse_strays(qrels, *paths)
    with contextlib.ExitStack() as stack:
        qrels, *copies = stack.enter_context(with_standard_input((qrels, *paths)))
        paths = tuple(copies)
        if paths and not beam_options:  # then this machine reads the files, and can start now
            from rankbeam.pipelines.local import overheads
            from rankbeam.pipelines.run import buckets

            stack.enter_context(buckets.start_reading(qrels, paths))
            if overheads.needs_no_clients(qrels, *paths, output or "", options["corpus"] or ""):
                overheads.import_beam_alone()
        from rankbeam.pipelines.run.options import pipeline_options
        from rankbeam.pipelines.run.score import ScoreOptions, scoring_experiment, tags

        folder = output or stack.enter_context(TemporaryDirectory(prefix="rankbeam-", ignore_cleanup_errors=True))
        scoring = scoring_experiment(qrels, paths, folder, ScoreOptions(**options, dialects=(dialects,)))
        scoring = scoring.with_disjoint(allow_disjoint)
        options = pipeline_options(beam_options, own_options())
        shown = OutputFormat(form, wide, per_query, tags(scoring), temporary=output is None)
        _run(scoring, None, shown, options, beam_options)


def _run(
    experiment: "Experiment",
    run_id: str | None,
    shown: OutputFormat,
    options: "PipelineOptions",
    beam_options: tuple[str, ...],
    *,
    reported: bool = False,
    wait: bool | None = None,
    all_rows: bool = False,
) -> None:
    from rankbeam.pipelines import report
    from rankbeam.pipelines.cli import outcome
    from rankbeam.pipelines.dataflow.uploads import refuse_local
    from rankbeam.pipelines.local import messages
    from rankbeam.pipelines.run import evaluate as evaluation
    from rankbeam.pipelines.run.evaluate import run_here
    from rankbeam.pipelines.run.options import has_workers_elsewhere, is_dataflow, is_portable, works_elsewhere
    from rankbeam.transforms.clients.warehouse import duckdb as warehouse

    is_submitted = is_dataflow(options) or is_portable(options)
    if wait is False and not is_submitted:
        raise click.UsageError("--no-wait is for jobs on a cluster; Beam's local runner works in this process")
    if is_dataflow(options) and not wait and experiment.served:
        from rankbeam.pipelines.run import corpora  # few experiments need it

        corpora.refuse_unwatched(experiment)
    if works_elsewhere(options):
        refuse_local(experiment, options)
    execution = evaluation.new_run(experiment, run_id)
    early = list(experiment.evaluation.warnings())
    warn(*early)
    if not shown.temporary:
        warehouse.refuse_foreign(experiment.output)
        if reported:
            report.refuse_foreign(experiment.output)
        refuse_second(experiment.output, run_id, options)
    if is_submitted:
        submitted = _submit(experiment, execution, options, beam_options, shown.form, wait=wait, all_rows=all_rows)
        if submitted is None:
            return
        results = submitted
    else:
        results = run_here(experiment, execution, options, temporary=shown.temporary)
    last = [results.over_failure_rate(experiment.calls.max_failure_rate), *results.over_budget().split("; ")]
    last += [results.mixed_versions(), results.most_failures() if last[0] else ""]
    late = filter(messages.is_news, results.run["warnings"])
    warn(*(warning for warning in late if warning not in (*early, *last)))  # the others are shown last
    shown = replace(shown, sampled=has_workers_elsewhere(options) and not all_rows)
    with _mark_finished(results) if is_submitted else contextlib.nullcontext():
        outcome.end(results, experiment, shown, reported=reported)


def _describe(
    experiment: "Experiment", path: str, run_id: str | None, options: "PipelineOptions", form: str, *, wide: bool
) -> None:
    from rankbeam.pipelines.run.evaluate import new_run
    from rankbeam.pipelines.run.options import is_dataflow, runner_name
    from rankbeam.pipelines.show.tabular import Screen

    if not is_dataflow(options):
        raise click.UsageError(
            "--dry-run describes a job on Dataflow; `rankbeam plan` shows what a run would cost\n"
            f"the runner is {runner_name(options)} here; for Dataflow, add --runner DataflowRunner"
        )
    from rankbeam.pipelines.dataflow import dry_run, uploads

    uploads.refuse_local(experiment, options)
    described = dry_run.describe(experiment, new_run(experiment, run_id), options, path)
    click.echo(described.as_json() if form == "json" else described.as_text(Screen.of(wide=wide)))


def _submit(
    experiment: "Experiment",
    execution: "Run",
    options: "PipelineOptions",
    beam_options: tuple[str, ...],
    form: str,
    *,
    wait: bool | None,
    all_rows: bool,
) -> "Results | None":
    """Submit a run to a cluster; return its results, or None without waiting for the job."""
    from rankbeam.pipelines.manage.jobs import RunRecord
    from rankbeam.pipelines.run.options import is_dataflow

    run = RunRecord.of(experiment, execution, all_rows=all_rows)
    if is_dataflow(options):
        return on_dataflow(experiment, execution, options, run, form, wait=bool(wait))
    return on_engine(experiment, execution, options, run, beam_options, own_options(), form, wait=wait is not False)


@contextlib.contextmanager
def _mark_finished(results: "Results") -> Iterator[None]:
    """Mark a job's run as finished when the block ends, unless a file could not be written."""
    from rankbeam.pipelines.manage import finish

    try:
        yield
    except SystemExit as end:
        if end.code != FAILED:
            finish.mark(results.output, results.run_id)
        raise
    finish.mark(results.output, results.run_id)


def run_here_and_show(experiment: "Experiment", name: str, form: str, *, wide: bool) -> None:
    """Run an experiment on this machine as `evaluate` does, and show its leaderboard."""
    from rankbeam.pipelines.plan.limits import refuse_above_budget
    from rankbeam.pipelines.run.folders import prepared_folders
    from rankbeam.pipelines.run.options import pipeline_options

    with prepared_folders(experiment):
        warn(*refuse_above_budget(experiment, name))
        _run(experiment, None, OutputFormat(form, wide), pipeline_options((), ()), (), reported=True)


def _split(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Paths of runs, and Beam's options after them."""
    first = next((position for position, word in enumerate(words) if word.startswith("--")), len(words))
    return words[:first], words[first:]


def _refuse_strays(*words: str) -> None:
    """Refuse trec_eval's options, and metrics without -m, which would be taken for file names."""
    for word in words:
        if word.startswith("-") and word != "-":
            raise click.UsageError(f"unknown option {word}; a file of this name would be ./{word}")
        if "@" in word and "/" not in word and not Path(word).exists():
            raise click.UsageError(f"{word}: no such file; a metric would be -m {shlex.quote(word)}")


def _refuse_option(word: str) -> None:
    if word == "-":
        raise click.UsageError("an experiment names files relative to its own; save it to a file instead of using -")
    if word.startswith("-"):
        raise click.UsageError(f"the experiment comes first, before Beam's options; found {word}")
