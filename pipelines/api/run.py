"""`rankbeam.evaluate` and `rankbeam.score`."""

import contextlib
import os
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from rankbeam.pipelines.api import experiments
from rankbeam.pipelines.api.inputs import Inputs, folder_of, of_python
from rankbeam.pipelines.api.jobs import refuse_second
from rankbeam.pipelines.api.result import Result
from rankbeam.pipelines.config.sections import problems_of
from rankbeam.pipelines.config.yaml_lines import YamlDocument
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.local.progress import is_notebook
from rankbeam.pipelines.plan.limits import refuse_above_budget
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.run import evaluate as evaluation
from rankbeam.pipelines.run.evaluate import run_here
from rankbeam.pipelines.run.folders import prepared_folders
from rankbeam.pipelines.run.options import is_dataflow, is_portable, pipeline_options
from rankbeam.pipelines.run.score import ScoreOptions, scoring_experiment
from rankbeam.transforms.clients.retrievers.applications.callables import register_systems
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records.errors import InputError, InputErrors

_PREFIX = "rankbeam-"
_SYSTEM = "system"  # configuration name of an unnamed system


def score_options(arguments: Mapping[str, Any]) -> ScoreOptions:
    values: dict[str, Any] = {name: of_python(value) for name, value in arguments.items()}
    values |= {name: _several(values[name]) for name in ("metrics", "dialects") if name in values}
    if isinstance(values.get("corpus"), os.PathLike):
        values["corpus"] = os.fspath(values["corpus"])
    try:
        return ScoreOptions.model_validate(values)
    except ValidationError as error:
        located = YamlDocument("score", values, {}, ())
        problems = problems_of(located, ScoreOptions, error)
        raise InputErrors([InputError(problem.problem) for problem in problems]) from error


def _several(value: Any) -> Any:
    if isinstance(value, str) or _is_measure(value):
        value = (value,)
    return tuple(str(one) if _is_measure(one) else one for one in value) if isinstance(value, list | tuple) else value


def _is_measure(value: Any) -> bool:
    """Return whether a value is a measure of ir_measures, such as `nDCG@10`, which prints as its name here."""
    return type(value).__module__.partition(".")[0] == "ir_measures"


def evaluate(
    experiment: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    allow_disjoint: bool = False,
    wait_for_lease_s: float | None = None,
    beam_options: Sequence[str] = (),
    system: Any = None,
    version: str | None = None,
    **overrides: Any,
) -> Result:
    """Run an experiment in this process, as `rankbeam evaluate` does.

    Args:
        experiment: path of a YAML file, or its content as a dict, whose paths are relative to the current folder.
        output: folder for the results, instead of the experiment's. If a dict names none, results go to a temporary
            folder, which is removed with the result. An experiment that calls services needs a folder of its own for
            its ledger.
        run_id: id of the run; a later run with the same id replaces it.
        allow_disjoint: if true, rankings and judgements may have nothing in common.
        wait_for_lease_s: seconds to wait for another run that uses the same ledger; by default until it ends.
        beam_options: options for Beam's local runner, such as `["--direct_num_workers=2"]`.
        system: a function of a query and its attributes that returns a text or {answer, contexts}, sync or async; or an
            object of LangChain, LlamaIndex or Haystack; or several by name. Each becomes a configuration to evaluate.
        version: version of `system`. Without it, every run calls `system` again.
        **overrides: keys of the experiment with new values, such as `metrics=["nDCG@10"]`; each replaces the old value
            as a whole.

    Raises:
        InputError: an input cannot be used; `InputErrors` has several problems in `errors`.
        RankbeamError: the run failed.
    """
    with contextlib.ExitStack() as stack:
        if system is not None:
            named = system if isinstance(system, dict) else {_SYSTEM: system}
            stack.enter_context(register_systems(named))
            overrides = overrides | {"configurations": experiments.with_systems(experiment, overrides, named, version)}
        stack.enter_context(experiments.hide_line_numbers(experiment, overrides))
        is_kept = output is not None or experiments.names_output(experiment, overrides)
        temporary = None if is_kept else _scratch(stack)
        folder = folder_of(output) if output is not None else temporary
        loaded = experiments.read_experiment(experiment, overrides, folder).with_disjoint(allow_disjoint)
        calls = replace(loaded.calls, wait_for_lease_s=wait_for_lease_s)
        loaded = replace(loaded, output=folder or files.absolute(loaded.output), calls=calls)
        if temporary is not None and loaded.makes_calls and loaded.calls.ledger_path is None:
            raise InputError(
                "output is missing; name a folder for the ledger, which keeps the answers that are paid for"
            )
        stack.enter_context(prepared_folders(loaded))
        for warning in refuse_above_budget(loaded, experiments.name_of(experiment)):
            warnings.warn(warning, stacklevel=2)
        results = _run(loaded, run_id, beam_options, temporary=temporary is not None)
        return Result(results, temporary)


def score(
    qrels: Any,
    runs: Any,
    metrics: str | Sequence[str] = (),
    *,
    output: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    allow_disjoint: bool = False,
    **options: Any,
) -> Result:
    """Score runs against judgements, as `rankbeam score` does.

    Tables have the same columns as Parquet files: `query_id`, `doc_id`, and `grade` or `score`, or other names in
    common use.

    Args:
        qrels: {query: {document: grade}}, a DataFrame, an Arrow table, the path of a file, Qrels of ranx, or the
            judgements of ir_measures and ir_datasets.
        runs: {name: run}, where a run is {query: {document: score}}, a DataFrame, an Arrow table, a path, a Run of
            ranx, or the results of ir_measures; or paths.
        metrics: names that rankbeam or trec_eval uses, or measures of ir_measures; by default the command line's.
        output: folder for the results; by default a temporary one, which is removed with the result.
        run_id: id of the run; a later run with the same id replaces it.
        allow_disjoint: if true, runs and judgements may have nothing in common.
        **options: the command line's options, with their defaults: `relevance_level`, `max_documents`, `judged_only`,
            `duplicates`, `ties`, `dialects`, `replicates`, `confidence`, `all_pairs`, `corpus`, `unit`.

    Raises:
        InputError: an input cannot be used; `InputErrors` has several problems in `errors`.
        RankbeamError: the run failed.
    """
    with contextlib.ExitStack() as stack:
        inputs = Inputs(stack.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX)))
        stack.enter_context(inputs.named())
        temporary = _scratch(stack) if output is None else None
        folder = folder_of(output) if output is not None else temporary
        scored_options = score_options({"metrics": metrics, **options})
        judged = inputs.qrels(qrels)
        paths, names = inputs.runs(runs)
        scoring = scoring_experiment(judged, paths, str(folder), scored_options, names)
        results = _run(scoring.with_disjoint(allow_disjoint), run_id, (), temporary=temporary is not None)
        return Result(results, temporary)


def _scratch(stack: contextlib.ExitStack) -> str:
    """A folder that is removed if the stack exits with an error."""
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    stack.push(lambda kind, *_: None if kind is None else files.delete(folder))
    return folder


def _run(experiment: Experiment, run_id: str | None, beam_options: Sequence[str], *, temporary: bool) -> Results:
    options = pipeline_options(beam_options)
    if is_dataflow(options) or is_portable(options):
        raise InputError("the Python API runs experiments in this process; use `rankbeam evaluate` for other runners")
    if not temporary:
        warehouse.refuse_foreign(experiment.output)
        refuse_second(experiment.output, run_id)
    execution = evaluation.new_run(experiment, run_id)
    is_watched = is_notebook() or (sys.stderr is not None and sys.stderr.isatty())
    results = run_here(experiment, execution, options, temporary=temporary, shown=is_watched)
    if not temporary:
        try:
            warehouse.build(results.output)
        except (InputError, OSError) as error:  # the result still exists
            warnings.warn(f"results.duckdb was not written: {error}", stacklevel=3)
    return results
