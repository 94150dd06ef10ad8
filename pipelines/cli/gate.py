"""The commands that check a finished run: against gates, or night after night against a pinned baseline."""

from dataclasses import replace

import click

from rankbeam.pipelines.cli.group import FloatRange, NamedRun, main, of_run, shown_as, wide
from rankbeam.pipelines.local.messages import FAILED, MISSED, leave, say, warn

_EXPERIMENT_HELP = "File with the gates: an experiment, or a file of gates alone. By default the run's own gates."
_BASELINE_HELP = "Differences are from the configurations of the same names in a run of this folder."
_BASELINE_RUN_HELP = "Id of the run in DIR2, or, without DIR2, in DIR; by default the experiment's latest other run."
_OTHER_DATASET_HELP = (
    "Accept a baseline with another dataset, such as an earlier state: differences are over the queries of both."
)
_MARKDOWN_HELP = "Write a summary in Markdown to this file; - prints it instead of the table."
_MONITOR_BASELINE_HELP = "The baseline; by default monitor.baseline of the experiment, else its first run."
_TOLERANCE_HELP = (
    "Tolerated fall of any mean, or rise if lower is better; by default the limit of the gates on `monitor`, else 0."
)
_ALPHA_HELP = "Probability of a false alarm within 90 nights; by default monitor.alpha, else 0.05."


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--experiment", metavar="FILE", help=_EXPERIMENT_HELP)
@click.option("--baseline", metavar="DIR2", help=_BASELINE_HELP)
@click.option("--baseline-run-id", metavar="ID", help=_BASELINE_RUN_HELP)
@of_run
@click.option("--other-dataset", is_flag=True, help=_OTHER_DATASET_HELP)
@click.option("--junit", metavar="FILE", help="Also write JUnit XML to this file, with a test case for each check.")
@click.option("--markdown", metavar="FILE", help=_MARKDOWN_HELP)
@shown_as()
@wide
def gate(
    named: NamedRun,
    experiment: str | None,
    baseline: str | None,
    baseline_run_id: str | None,
    other_dataset: bool,
    junit: str | None,
    markdown: str | None,
    form: str,
    wide: bool,
) -> None:
    """Check the run in DIR against gates: limits on means, on intervals, and on differences from a baseline.

    Exit status: 0 every gate is met, 3 some are missed, 2 the input was refused. A gate whose value is missing is
    missed; with `if_missing: skip`, a gate is new if the baseline's run lacks its configuration, metric or slice. DIR
    and DIR2 may be bigquery://project.dataset, for runs in BigQuery.

    \b
    Examples:
      rankbeam gate out/helpdesk
      rankbeam gate out/pr --experiment gates.yaml --baseline out/main \\
        --junit gates.xml --markdown summary.md
      rankbeam gate out/pr --baseline bigquery://my-project.search \\
        --baseline-run-id main
    """
    from rankbeam.pipelines.compare.shared_queries import shared_queries
    from rankbeam.pipelines.gates import checks as gate_checks
    from rankbeam.pipelines.gates import show as gate_show
    from rankbeam.pipelines.gates.gates import located_gates, name_of, read_gates
    from rankbeam.pipelines.results.judge_differences import judge_differences
    from rankbeam.pipelines.show.tabular import Screen
    from rankbeam.transforms.clients.storage import files

    if markdown == "-" and form == "json":
        raise click.UsageError("--markdown - and --format json both print; name a file for one of them")
    checked_gates = None if experiment is None else read_gates(experiment)
    name = named.experiment_name or (None if checked_gates is None else name_of(checked_gates))
    run, other = replace(named, experiment_name=name).with_other(baseline, baseline_run_id)
    gates = located_gates(checked_gates or run.experiment_file, gate_checks.known_of(run, other))
    checks = gate_checks.check(run, gates, other, other_dataset=other_dataset)
    if junit is not None:
        files.write(junit, gate_show.as_junit(checks, run))
    if markdown is not None and markdown != "-":
        files.write(markdown, gate_show.as_markdown(checks, run, other).encode())
    if markdown == "-":
        click.echo(gate_show.as_markdown(checks, run, other), nl=False)
    elif form == "json":
        click.echo(gate_show.as_json(checks, run, other))
    else:
        click.echo(gate_show.as_text(checks, Screen.of(wide=wide)))
    if other is not None:
        say(f"differences are from {other.named}, in {other.output}")
        if shared := shared_queries(run, other):
            say(shared.sentence)
        warn(*judge_differences(run, other, (gate.metric for gate in gates if gate.is_difference)))
    if not all(check.is_met for check in checks):
        leave(gate_show.summary(checks), MISSED)
    say(gate_show.summary(checks))


@main.command()
@click.argument("folder", metavar="DIR")
@click.option("--baseline-run-id", metavar="ID", help=_MONITOR_BASELINE_HELP)
@click.option("--tolerance", type=FloatRange(min=0), metavar="T", help=_TOLERANCE_HELP)
@click.option("--alpha", type=FloatRange(0, 0.5, min_open=True, max_open=True), metavar="A", help=_ALPHA_HELP)
@of_run
@shown_as()
@wide
def monitor(
    named: NamedRun, baseline_run_id: str | None, tolerance: float | None, alpha: float | None, form: str, wide: bool
) -> None:
    """Show how far the metrics of the latest run in DIR have moved from a pinned baseline run.

    If both runs have the same queries, they are compared query by query. If each night has fresh queries, confidence
    sequences combine the nights, so that false alarms are rare, no matter how many nights you look at. The rows are
    also written to the table `monitor`.

    Exit status: 0 nothing got worse; 3 a whole interval is beyond the tolerated fall (or rise, if lower is better), or
    the run has no value of a metric; 2 the input was refused; 1 the table cannot be written.

    \b
    Examples:
      rankbeam monitor out/production --tolerance 0.02
      rankbeam monitor out/production --baseline-run-id 2026-01-01
    """
    from rankbeam.pipelines.gates.checks import tolerances_of
    from rankbeam.pipelines.monitor import show
    from rankbeam.pipelines.monitor.changes import monitor_run
    from rankbeam.pipelines.monitor.show import rebuild, store
    from rankbeam.pipelines.show.tabular import Screen
    from rankbeam.transforms.clients.bigquery.names import is_table
    from rankbeam.transforms.records.errors import InputError

    run = named.find()
    result, tolerances = monitor_run(run, baseline_run_id, alpha), tolerances_of(run, tolerance)
    warn(*result.warnings)
    screen = Screen.of(wide=wide)
    click.echo(show.as_json(result, tolerances) if form == "json" else show.as_text(result, tolerances, screen))
    if result.changes and is_table(named.folder):
        warn("the table monitor is written for runs in folders only")
    missed = show.summary(result, tolerances)
    if result.changes and not is_table(named.folder):
        try:
            store(result, tolerances)
            rebuild(named.folder)
        except InputError as error:
            warn(str(error))
            leave("; ".join(filter(None, ["not written: the table monitor", missed])), FAILED)
    if missed:
        leave(missed, MISSED)
