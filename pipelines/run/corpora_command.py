"""What the commands `rankbeam corpora` do: list, show and delete the corpora that rankbeam made, and nothing else."""

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.results.find import finished_runs
from rankbeam.pipelines.run.corpora import RUN, needed, refusing
from rankbeam.transforms.clients.corpora.rag_engine.data_api import DataApi
from rankbeam.transforms.clients.corpora.rag_engine.site import DATA_QUOTA, Site
from rankbeam.transforms.clients.corpora.rag_engine.work import Existing
from rankbeam.transforms.clients.ledger import Ledger
from rankbeam.transforms.records.calls.quota import Quota
from rankbeam.transforms.records.errors import CallError, InputError
from rankbeam.transforms.records.suggestions import did_you_mean

_LOCATION = re.compile(r"projects/[^/\s]+/locations/[a-z0-9-]+")


@dataclass(frozen=True)
class Place:
    """Where corpora are.

    Attributes:
        api: the data API of their project and region.
        quota: of it.
    """

    api: DataApi
    quota: Quota = DATA_QUOTA

    @contextmanager
    def site(self) -> Iterator[Site]:
        """The corpora there; nothing that is done to them is kept in a ledger."""
        with tempfile.TemporaryDirectory(prefix="rankbeam-corpora-") as folder, refusing():
            yield Site(self.api, Ledger(folder), self.quota)

    def corpora(self) -> tuple[Existing, ...]:
        """All corpora there that rankbeam made."""
        with self.site() as site:
            return site.find()


def places(given: str, api_endpoint: str | None) -> list[Place]:
    """The places that an argument names: projects/P/locations/L, or those of an experiment's corpora.

    Raises:
        InputError: it is neither.
    """
    if _LOCATION.fullmatch(given):
        return [Place(DataApi(given, api_endpoint))]
    if given.startswith("projects/"):
        raise InputError("is not a location; give projects/PROJECT/locations/REGION, or an experiment", path=given)
    experiment = load_experiment(given)
    found = [Place(each.api, experiment.corpus_quotas.data) for each in needed(experiment)]
    if not found:
        raise InputError("has no corpus that a service builds", path=given)
    return found


def shown(corpora: Sequence[Existing], form: str) -> str:
    """Corpora, for people or as JSON."""
    if form == "json":
        return json.dumps([_values(each) for each in corpora], indent=2, ensure_ascii=False)
    return "\n".join(line(each) for each in corpora) or "no corpus of rankbeam's"


def line(each: Existing) -> str:
    """A corpus in one line."""
    state = f"{each.about.files:,} files" if each.about.complete else "incomplete"
    return f"{each.corpus.name}  {each.about.name}  {state}  {_until(each)}"


def detailed(each: Existing, form: str) -> str:
    """All that is known of a corpus."""
    values = _values(each)
    if form == "json":
        return json.dumps(values, indent=2, ensure_ascii=False)
    values["specification"] = json.dumps(values["specification"], sort_keys=True)
    width = max(map(len, values))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in values.items())


def named(corpora: Sequence[Existing], names: Sequence[str]) -> list[Existing]:
    """Corpora by their resources, the last parts of these, or their identities.

    Raises:
        InputError: rankbeam made no corpus of that name.
    """
    by_name = {name: each for each in corpora for name in _names(each)}
    for name in names:
        if name not in by_name:
            known = [each.corpus.name for each in corpora]
            hint = did_you_mean(name, known) if known else "there is none of rankbeam's"
            raise InputError(f"{name!r} is no corpus that rankbeam made; {hint}")
    return list({by_name[name].corpus.name: by_name[name] for name in names}.values())


def expired(corpora: Sequence[Existing]) -> list[Existing]:
    """Those whose days are over."""
    now = datetime.now(UTC)
    return [each for each in corpora if each.about.is_expired(now)]


def unused_by(corpora: Sequence[Existing], output: str) -> list[Existing]:
    """Those that no finished run in an output folder searched.

    Raises:
        InputError: it holds no run.
    """
    rows = (run.table("corpora", ["identity"])["identity"].to_pylist() for run in finished_runs(output))
    used = {identity for identities in rows for identity in identities}
    return [each for each in corpora if each.about.identity not in used]


def delete(place: Place, corpora: Sequence[Existing], report: Callable[[str], None]) -> int:
    """Delete corpora; returns how many are still there."""
    with place.site() as site:
        outcomes = site.delete([each.corpus.name for each in corpora])
    for each, outcome in zip(corpora, outcomes, strict=True):
        kept = f"not deleted: {each.corpus.name}: {outcome}"
        report(kept if isinstance(outcome, CallError) else f"deleted: {outcome}")
    return sum(isinstance(outcome, CallError) for outcome in outcomes)


def _names(each: Existing) -> tuple[str, ...]:
    name, identity = each.corpus.name, each.about.identity
    return name, name.rpartition("/")[2], identity, identity[:16], each.about.display_name


def _values(each: Existing) -> dict[str, object]:
    corpus = each.corpus
    return {"resource": corpus.name, "state": corpus.state, **asdict(each.about), "made": corpus.created}


def _until(each: Existing) -> str:
    own = each.about
    if own.keep == RUN:
        return f"of run {own.run}, which deletes it at its end"
    if not own.expires:
        return "kept"
    verb = "expired" if own.is_expired(datetime.now(UTC)) else "expires"
    return f"{verb} {datetime.fromisoformat(own.expires):%Y-%m-%d %H:%M} UTC"
