"""What evaluate and score do with a finished run: show it, hold it against its limits, and write what is made of it.

The result comes first: it may be long in the making, and what fails after it, such as a full disk, must not hide it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import click

from rankbeam.pipelines import report, show
from rankbeam.pipelines.cli.group import FAILED, MISSED, leave, warn
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.clients.warehouse import duckdb as warehouse
from rankbeam.transforms.records.errors import InputError


@dataclass(frozen=True)
class Shown:
    """How a result is shown.

    Attributes:
        form: the output format.
        per_query: also show every query.
        tags: what trec_eval would print as `runid`, by configuration name.
        temporary: the tables are deleted afterwards.
    """

    form: str
    per_query: bool
    tags: dict[str, str]
    temporary: bool


def refuse_foreign(output: str, *, reported: bool) -> None:
    """Make sure that what will be written after the run replaces nothing that rankbeam did not make.

    Raises:
        InputError: it would.
    """
    warehouse.refuse_foreign(output)
    if reported:
        report.refuse_foreign(output)


def end(results: Results, experiment: Experiment, shown: Shown, *, reported: bool) -> None:
    """Show a result, write what is made of its tables, and end with a status if not all is well."""
    closed, missed = None, ""
    try:
        missed = _shown(results, experiment, shown)
    except BrokenPipeError as error:  # the files are written all the same
        closed = error
    lost = [] if shown.temporary else _write(results, shown.form, reported=reported, told=closed is None)
    if closed is not None:
        raise closed
    if lost:
        leave("; ".join([f"not written: {', '.join(lost)}", *filter(None, [missed])]), FAILED)
    if missed:
        leave(missed, MISSED)


def _shown(results: Results, experiment: Experiment, shown: Shown) -> str:
    """Show a result and its gates; returns which limits it misses, in words, or ""."""
    _show(results, shown)
    over = results.over_failure_rate(experiment.max_failure_rate)
    return "; ".join(filter(None, [over, results.unmet(), _gates(results, experiment, shown.form)]))


def _show(results: Results, shown: Shown) -> None:
    form, per_query = shown.form, shown.per_query
    if form == "table":
        if per_query:
            click.echo(show.as_csv(results, per_query=True))
        show.print_table(results)
    elif form == "json":
        click.echo(show.as_json(results, per_query=per_query, temporary=shown.temporary))
    elif form == "trec":
        for line in show.as_trec(results, shown.tags, per_query=per_query):
            click.echo(line)
    elif form == "csv":
        click.echo(show.as_csv(results, per_query=per_query), nl=False)
    else:
        click.echo(show.as_markdown(results) if form == "markdown" else show.as_latex(results), nl=False)


def _gates(results: Results, experiment: Experiment, form: str) -> str:
    """Hold the run against the experiment's gates; returns how many it misses, in words, or ""."""
    if not experiment.gates:
        return ""
    from rankbeam.pipelines.gates import checks as gate_checks
    from rankbeam.pipelines.gates import show as gate_show

    checks = gate_checks.check(results, experiment.gates)
    click.echo(f"\n{gate_show.as_text(checks)}", err=form != "table")
    return "" if all(each.is_met for each in checks) else gate_show.summary(checks)


def _write(results: Results, form: str, *, reported: bool, told: bool) -> list[str]:
    """Write the DuckDB file and the report, and say where all is; returns what could not be written."""
    makers: dict[str, Callable[[], str]] = {"DuckDB": lambda: warehouse.build(results.output)}
    if reported:
        makers["report"] = lambda: report.write(results)
    places, lost = {"tables": results.output}, []
    for name, make in makers.items():
        try:
            places[name] = make()
        except InputError as error:
            warn(str(error))
            lost.append(name)
        except OSError as error:
            warn(f"{error.filename or results.output}: {error.strerror or error}")
            lost.append(name)
    if told:
        lines = [f"{name:<7} {place}" for name, place in places.items()]
        text = "\n".join([f"\nrun {results.run_id} of {results.run['experiment']}", *lines])
        click.echo(text, err=form != "table")
    return lost
