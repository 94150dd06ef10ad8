"""The commands `rankbeam corpora`: list, show and delete corpora that rankbeam created, and no others."""

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.local.interrupt import Interrupted
from rankbeam.pipelines.local.messages import say
from rankbeam.pipelines.results.find import finished_runs
from rankbeam.pipelines.run.corpora import needed_corpora, needless_in, translate_errors, unstage
from rankbeam.pipelines.show.tabular import Screen, Table
from rankbeam.transforms.clients.corpora.rag_engine.corpus_client import DATA_QUOTA, CorpusClient
from rankbeam.transforms.clients.corpora.rag_engine.data_api import DataApi
from rankbeam.transforms.clients.corpora.rag_engine.description import RUN
from rankbeam.transforms.clients.corpora.rag_engine.work import ExistingCorpus
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import CallError, InputError, did_you_mean, json_text, pluralize

_LOCATIONS = re.compile(r"(?P<project>projects/[^/\s]+/locations)/(?P<regions>[a-z0-9-]+(?:,[a-z0-9-]+)*)")

_OUTCOME = "the service completes the requests that it has received"
_PROJECT = re.compile(r"projects/[^/\s]+")
_ALL_LOCATIONS = "aiplatform.googleapis.com"
"""The address that lists a project's locations; each location has its own address for everything else."""


@dataclass(frozen=True)
class CorpusLocation:
    """Location of corpora."""

    api: DataApi
    quota: Quota = DATA_QUOTA
    is_named: bool = True

    @contextmanager
    def client(self) -> Iterator[CorpusClient]:
        """A client for the corpora there, without a lasting ledger."""
        temporary = tempfile.TemporaryDirectory(prefix="rankbeam-corpora-", ignore_cleanup_errors=True)
        try:
            with temporary as folder, translate_errors():
                yield CorpusClient(self.api, Ledger(folder), self.quota)
        except KeyboardInterrupt:  # its threads still write to the folder
            raise Interrupted([temporary.name], _OUTCOME) from None

    def corpora(self) -> tuple[ExistingCorpus, ...]:
        try:
            with self.client() as client:
                return client.find()
        except InputError as error:
            if self.is_named:
                raise
            say(f"{self.api.location} has no corpora that can be listed: {error}")
            return ()


def places(name: str, api_endpoint: str | None) -> list[CorpusLocation]:
    """The locations that an argument names: projects/P/locations/L,M, all of projects/P, or an experiment's."""
    if (match := _LOCATIONS.fullmatch(name)) is not None:
        regions = dict.fromkeys(match["regions"].split(","))
        return [CorpusLocation(DataApi(f"{match['project']}/{region}", api_endpoint)) for region in regions]
    if _PROJECT.fullmatch(name):
        with CorpusLocation(DataApi(f"{name}/locations/-", api_endpoint or _ALL_LOCATIONS)).client() as client:
            return [
                CorpusLocation(DataApi(location, api_endpoint), is_named=False)
                for location in sorted(client.locations())
            ]
    if name.startswith("projects/"):
        problem = "is not a location; give projects/PROJECT[/locations/REGION[,REGION …]], or an experiment"
        raise InputError(problem, path=name)
    experiment = load_experiment(name)
    locations = [
        CorpusLocation(corpora.api, experiment.calls.corpus_quotas.data) for corpora in needed_corpora(experiment)
    ]
    if not locations:
        raise InputError("has no corpus that a service builds", path=name)
    return locations


def format_list(corpora: Sequence[ExistingCorpus], form: str, screen: Screen) -> str:
    if form == "json":
        return json_text([_values(corpus) for corpus in corpora])
    if not corpora:
        return "no corpus of rankbeam's"
    return screen.table(Table(["corpus", "name", "content", "kept"], [_cells(corpus) for corpus in corpora], 4))


def line(corpus: ExistingCorpus) -> str:
    return "  ".join(_cells(corpus))


def _cells(corpus: ExistingCorpus) -> list[str]:
    state = pluralize(corpus.about.files, "file") if corpus.about.complete else "incomplete"
    return [corpus.resource, corpus.about.name, state, _until(corpus)]


def format_details(corpus: ExistingCorpus, form: str) -> str:
    values = _values(corpus)
    if form == "json":
        return json_text(values)
    values["specification"] = json.dumps(values["specification"], sort_keys=True)
    width = max(map(len, values))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in values.items())


def find_by_name(corpora: Sequence[ExistingCorpus], names: Sequence[str]) -> list[ExistingCorpus]:
    """Corpora by their resources, the last part of these, or their identities."""
    for name in names:
        resources = [chosen_corpus.resource for chosen_corpus in filter_by_name(corpora, [name])]
        if len(resources) > 1:
            raise InputError(f"{name!r} names several corpora; give one of {', '.join(resources)}")
        if not resources:
            known = [corpus.resource for corpus in corpora]
            hint = did_you_mean(name, known) if known else "rankbeam has created none there"
            raise InputError(f"{name!r} is not a corpus of rankbeam; {hint}")
    return filter_by_name(corpora, names)


def filter_by_name(corpora: Sequence[ExistingCorpus], names: Sequence[str]) -> list[ExistingCorpus]:
    return [corpus for corpus in corpora if {*_names(corpus)} & {*names}]


def expired(corpora: Sequence[ExistingCorpus]) -> list[ExistingCorpus]:
    now = datetime.now(UTC)
    return [corpus for corpus in corpora if corpus.about.is_expired(now)]


def unused_by(corpora: Sequence[ExistingCorpus], outputs: Sequence[str]) -> list[ExistingCorpus]:
    """The corpora that no finished run in the output folders searched."""
    runs = (run for output in outputs for run in finished_runs(output))
    rows = (run.table("corpora", ["identity"])["identity"].to_pylist() for run in runs)
    used = {identity for identities in rows for identity in identities}
    return [corpus for corpus in corpora if corpus.about.identity not in used]


def delete(
    place: CorpusLocation, corpora: Sequence[ExistingCorpus], report: Callable[[str], None], *, keep_documents: bool
) -> list[str]:
    """Delete corpora, and the staged documents that no other corpus needs; return what could not be deleted.

    Documents are deleted first: if the process is killed, the corpora are still there, and deleted by the next attempt.
    """
    undeleted = []
    names = [corpus.resource for corpus in corpora]
    with place.client() as client:
        remaining = [other for other in client.find() if other.resource not in names]
        try:
            if number := unstage(place.api.location, corpora, remaining, keep_documents=keep_documents):
                report(f"deleted: {pluralize(number, 'staged document')} that no corpus needs")
        except InputError as error:
            undeleted.append(f"staged documents of these corpora: {error}")
        outcomes = client.delete(names)
    for name, outcome in zip(names, outcomes, strict=True):
        if isinstance(outcome, CallError):
            undeleted.append(f"{name}: {outcome}")
        else:
            report(f"deleted: {outcome}")
    return undeleted


def staged_line(place: CorpusLocation, corpora: Sequence[ExistingCorpus], there: Sequence[ExistingCorpus]) -> str:
    """A text about the staged documents that deleting some corpora would orphan."""
    names = {corpus.resource for corpus in corpora}
    remaining = [other for other in there if other.resource not in names]
    folders = sorted({corpus.about.staging for corpus in corpora} - {""})
    try:
        number = sum(len(needless_in(folder, place.api.location, corpora, remaining)[0]) for folder in folders)
    except InputError as error:
        return f"their staged documents cannot be listed: {error}"
    return f"with {pluralize(number, 'staged document')} that no other corpus needs"


def _names(corpus: ExistingCorpus) -> tuple[str, ...]:
    name, identity = corpus.resource, corpus.about.identity
    return name, name.rpartition("/")[2], identity, identity[:16], corpus.about.display_name


def _values(corpus: ExistingCorpus) -> dict[str, object]:
    return {"resource": corpus.resource, "state": corpus.state, **asdict(corpus.about), "made": corpus.created}


def _until(corpus: ExistingCorpus) -> str:
    about = corpus.about
    if about.keep == RUN:
        return f"of run {about.run}, which deletes it at its end"
    if not about.expires:
        return "kept"
    verb = "expired" if about.is_expired(datetime.now(UTC)) else "expires"
    return f"{verb} {datetime.fromisoformat(about.expires):%Y-%m-%d %H:%M} UTC"
