"""The end of evaluate and score: show a finished run, check its limits, and write the files made from its tables.

The result is shown first: it may have taken hours, and a later failure, such as a full disk, must not hide it.
"""

import sys
from collections.abc import Callable

import click

from rankbeam.pipelines import report, show
from rankbeam.pipelines.cli.group import OutputFormat
from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.local import messages
from rankbeam.pipelines.local.messages import FAILED, MISSED, leave, warn
from rankbeam.pipelines.manage import derived
from rankbeam.pipelines.manage.derived import sample_rows
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.tabular import Screen
from rankbeam.transforms.clients.bigquery.names import DatasetName
from rankbeam.transforms.records.errors import InputError, visible


def end(results: Results, experiment: Experiment, shown: OutputFormat, *, reported: bool) -> None:
    """Show a result, write the files made from its tables, and exit with a status if it failed or missed a limit."""
    closed, missed = None, ""
    try:
        missed = _show_and_check(results, experiment, shown)
    except BrokenPipeError as error:  # write the files all the same
        closed = error
    if experiment.is_monitored and not shown.temporary:
        with messages.log_to_stderr():
            derived.monitor(results)
    unwritten = (
        [] if shown.temporary else _write(results, shown, experiment.bigquery, reported=reported, listed=closed is None)
    )
    if closed is not None:
        raise closed
    if unwritten:
        leave("; ".join([f"not written: {', '.join(unwritten)}", *filter(None, [missed])]), FAILED)
    if missed:
        leave(missed, MISSED)


def _show_and_check(results: Results, experiment: Experiment, shown: OutputFormat) -> str:
    """Show a result and its gates; return a text about missed limits, or ""."""
    _show(results, shown)
    over = results.over_failure_rate(experiment.calls.max_failure_rate)
    over = "; ".join(filter(None, [over, over and results.most_failures()]))
    limits = [results.over_budget(), over, results.mixed_versions(), results.unmet()]
    return "; ".join(filter(None, [*limits, _gates(results, experiment, shown)]))


def _show(results: Results, shown: OutputFormat) -> None:
    form, per_query = shown.form, shown.per_query
    if form == "table":
        if per_query:
            _echo_csv(results, per_query=True)
            click.echo()
        screen = Screen.of(wide=shown.wide)
        click.echo(show.as_text(results, screen))
        if line := show.judge_line(results):
            click.echo(f"\n{screen.prose(line)}")
    elif form == "json":
        for text in show.as_json(results, per_query=per_query, temporary=shown.temporary):
            click.echo(text, nl=False)
        click.echo()
    elif form == "trec":
        for line in show.as_trec(results, shown.tags, per_query=per_query):
            click.echo(line)
    elif form == "csv":
        _echo_csv(results, per_query=per_query)
    else:
        click.echo(show.as_markdown(results) if form == "markdown" else show.as_latex(results), nl=False)


def _echo_csv(results: Results, *, per_query: bool) -> None:
    for text in show.as_csv(results, per_query=per_query):
        click.echo(text, nl=False)


def _gates(results: Results, experiment: Experiment, shown: OutputFormat) -> str:
    """Check the run against the experiment's gates; return a text about missed gates, or ""."""
    if not experiment.gates:
        return ""
    from rankbeam.pipelines.gates import checks as gate_checks
    from rankbeam.pipelines.gates import show as gate_show

    checks = gate_checks.check(results, experiment.gates)
    is_message = shown.form != "table"
    screen = Screen.of(sys.stderr if is_message else sys.stdout, wide=shown.wide)
    click.echo(f"\n{gate_show.as_text(checks, screen)}", err=is_message)
    return "" if all(check.is_met for check in checks) else gate_show.summary(checks)


def _write(
    results: Results, shown: OutputFormat, published: DatasetName | None, *, reported: bool, listed: bool
) -> list[str]:
    """Write the DuckDB file and the report, and list all paths; return the names of files that were not written."""
    makers: dict[str, Callable[[], str]] = {"DuckDB": lambda: _build(results, shown)}
    if reported:
        makers["report"] = lambda: report.write(sample_rows(results) if shown.sampled else results)
    places, unwritten = {"tables": results.output}, []
    if published is not None:
        places["BigQuery"] = str(published)
    for name, make in makers.items():
        try:
            places[name] = make()
        except InputError as error:
            warn(str(error))
            unwritten.append(name)
        except OSError as error:
            warn(f"{error.filename or results.output}: {error.strerror or error}")
            unwritten.append(name)
    if listed:
        lines = [
            *show.corpora_lines(results),
            *show.usage_lines(results),
            *(f"{name:<{max(7, *map(len, places))}} {place}" for name, place in places.items()),
        ]
        text = "\n".join([f"\nrun {results.run_id} of {visible(results.run['experiment'])}", *lines])
        click.echo(text, err=shown.form != "table")
    return unwritten


def _build(results: Results, shown: OutputFormat) -> str:
    with messages.log_to_stderr():
        return derived.build_duckdb(results.output, results.run_id, all_rows=not shown.sampled)
