"""The commands about corpora that a service built: corpora list, show and delete."""

import sys
from typing import TYPE_CHECKING

import click

from rankbeam.pipelines.cli.group import main, shown_as
from rankbeam.pipelines.local.interrupt import defer_interrupt
from rankbeam.pipelines.local.messages import FAILED, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rankbeam.transforms.clients.corpora.rag_engine.work import ExistingCorpus

_DELETING = "stopping once these corpora and their staged documents are deleted; press Ctrl-C again to stop at once"
_ENDPOINT = click.option(
    "--api-endpoint", metavar="ADDRESS", help="Address of the service, instead of the location's public one."
)


@main.group()
def corpora() -> None:
    """List, show and delete the corpora that rankbeam built in RAG Engine.

    PLACE is an experiment (a YAML file), for the projects and regions of its corpora, or projects/P/locations/L,M,…, or
    projects/P, for all locations. Corpora that rankbeam did not create are never shown, changed or deleted.
    """


@corpora.command("list")
@click.argument("place")
@_ENDPOINT
@shown_as()
def list_(place: str, api_endpoint: str | None, form: str) -> None:
    """List the corpora that rankbeam created, with their files and expiry dates.

    \b
    Examples:
      rankbeam corpora list projects/my-project
      rankbeam corpora list projects/my-project/locations/us-central1,europe-west4
      rankbeam corpora list examples/rag_engine_corpora.yaml
    """
    from rankbeam.pipelines.manage import corpora
    from rankbeam.pipelines.show.tabular import Screen

    listed = [corpus for location in corpora.places(place, api_endpoint) for corpus in location.corpora()]
    click.echo(corpora.format_list(listed, form, Screen.of()))


@corpora.command()
@click.argument("place")
@click.argument("name")
@_ENDPOINT
@shown_as()
def show(place: str, name: str, api_endpoint: str | None, form: str) -> None:
    """Show all details of the corpus NAME (its resource, the number at its end, or its identity)."""
    from rankbeam.pipelines.manage import corpora

    listed = [corpus for location in corpora.places(place, api_endpoint) for corpus in location.corpora()]
    click.echo(corpora.format_details(corpora.find_by_name(listed, [name])[0], form))


@corpora.command()
@click.argument("place")
@click.argument("names", nargs=-1, metavar="[NAME …]")
@click.option("--expired", is_flag=True, help="Delete corpora whose `keep` period has ended.")
@click.option(
    "--unused-by", metavar="DIR", multiple=True, help="Delete corpora that no run in this output folder searched."
)
@click.option("--keep-staged", is_flag=True, help="Keep the documents in the bucket, for future corpora.")
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@_ENDPOINT
def delete(
    place: str,
    names: tuple[str, ...],
    expired: bool,
    unused_by: tuple[str, ...],
    keep_staged: bool,
    dry_run: bool,
    yes: bool,
    api_endpoint: str | None,
) -> None:
    """Delete corpora that rankbeam created, after asking for confirmation.

    Name corpora, or use --expired or --unused-by (repeat it for several folders); with both, only corpora that are
    expired and unused are deleted. Staged documents that no corpus needs any more are deleted, too.

    \b
    Examples:
      rankbeam corpora delete projects/my-project/locations/us-central1 \\
        --expired --dry-run
      rankbeam corpora delete experiment.yaml 4611686018427387904
    """
    from rankbeam.pipelines.manage import corpora

    if bool(names) == (expired or bool(unused_by)):
        raise click.UsageError("name corpora, or give --expired or --unused-by")
    is_failed = False
    by_location = {location: location.corpora() for location in corpora.places(place, api_endpoint)}
    if names:
        corpora.find_by_name(
            [corpus for existing in by_location.values() for corpus in existing], names
        )  # all are there
    for location, existing in by_location.items():
        chosen = _select_corpora(existing, names, unused_by, expired=expired)
        for corpus in chosen:
            click.echo(corpora.line(corpus))
        if not chosen:
            click.echo(f"nothing to delete in {location.api.location}")
            continue
        if not keep_staged:
            click.echo(corpora.staged_line(location, chosen, existing))
        if not dry_run and (yes or _is_confirmed(len(chosen))):
            with defer_interrupt(_DELETING) as raise_held:
                if undeleted := corpora.delete(location, chosen, click.echo, keep_documents=keep_staged):
                    say("\n".join(["rankbeam: not deleted:", *undeleted]))
                    is_failed = True
            raise_held()
    if is_failed:
        sys.exit(FAILED)


def _select_corpora(
    existing: "Sequence[ExistingCorpus]", names: tuple[str, ...], unused_by: tuple[str, ...], *, expired: bool
) -> "list[ExistingCorpus]":
    from rankbeam.pipelines.manage import corpora

    if names:
        return corpora.filter_by_name(existing, names)
    candidates = corpora.expired(existing) if expired else list(existing)
    return corpora.unused_by(candidates, unused_by) if unused_by else candidates


def _is_confirmed(number: int) -> bool:
    what = "this corpus" if number == 1 else f"these {number:,} corpora"
    return click.confirm(f"Delete {what} with all files?", default=False, err=True)
