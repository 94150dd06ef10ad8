"""Claims and uses of corpora, in their descriptions: who imports into a corpus, and which runs still need it.

The service has no etags, and the last description wins. So a claim is written, and read again after a moment, before
anything is imported. The run that creates a corpus claims it with its first description.

    free, or abandoned ──► written ──► read again ─ mine ──► import ──► complete, or released
            ▲                              │ another one
            └────────── look again ◄───────┘
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from rankbeam.transforms.clients.corpora.rag_engine import work
from rankbeam.transforms.clients.corpora.rag_engine.description import CorpusDescription
from rankbeam.transforms.clients.ledger.leases import process
from rankbeam.transforms.clients.ledger.leases.lease import Holder
from rankbeam.transforms.records.calls.steps import Steps, pause
from rankbeam.transforms.records.errors import CallError, FailureKind

ABANDONED_S = 600.0
"""A claim of another machine counts as abandoned after this long without a change of the claim or an import."""
_LOOK_S, _SETTLE_S = 30.0, 2.0
_MOST_WRITES = 5


def claim_corpus(
    resource: str,
    me: Holder,
    suffices: Callable[[CorpusDescription], bool],
    report: Callable[[str], None],
) -> Steps[CorpusDescription]:
    """Wait until this run has claimed a corpus, or another run has imported all files; returns the description."""
    seen: Mapping[str, Any] | None = None
    quiet = 0.0
    for seconds in work.pauses(_LOOK_S):
        about = yield from read_about(resource)
        holder = holder_of(about)
        if suffices(about) or is_claim(about, me):
            return about
        running = yield from work.running_imports(resource)
        quiet = quiet + seconds if about.claim == seen and not running else 0.0
        seen = about.claim
        if holder is not None and not has_ended(holder, me) and quiet < ABANDONED_S:
            report(f"corpora: {resource}: waiting for {holder}, which imports into it")
            yield [pause(seconds)]
            continue
        for operation in running:
            yield from work.wait_for_end(operation)
        if not running:
            yield from work.update_corpus(resource, replace(about, complete=False, claim=asdict(me)))
            yield [pause(_SETTLE_S)]
    raise AssertionError("pauses do not end")


def is_claim(about: CorpusDescription, me: Holder) -> bool:
    holder = holder_of(about)
    return holder is not None and holder.token == me.token


def read_about(resource: str) -> Steps[CorpusDescription]:
    for existing in work.ours((yield from work.listed_corpora())):
        if existing.resource == resource:
            return existing.about
    raise CallError(FailureKind.NOT_FOUND, f"NOT_FOUND: the RagCorpus {resource} does not exist")


def holder_of(about: CorpusDescription) -> Holder | None:
    """The run that imports into a corpus; None if no run does."""
    try:
        return None if about.claim is None else Holder(**about.claim)
    except TypeError:  # written by another release
        return None


def claimant(run: str, started: datetime) -> Holder:
    return replace(Holder.here(run, started.isoformat()).claiming(started), beat="0")


def user_of(holder: Holder) -> dict[str, dict[str, Any]]:
    user = {"since": holder.since, "machine": holder.machine, "pid": holder.pid, "pid_started": holder.pid_started}
    return {_key(holder): user}


def register_use(me: Holder, resource: str) -> Steps[str]:
    """Record in a corpus with `keep: run` that this run needs it, too; returns the name of the resource."""
    for _ in range(_MOST_WRITES):
        about = yield from read_about(resource)
        if _key(me) in about.users:
            return resource
        yield from work.update_corpus(resource, replace(about, users={**about.users, **user_of(me)}))
        yield [pause(_SETTLE_S)]  # another run may write at this moment, and overwrite this entry
    raise CallError(FailureKind.UNAVAILABLE, "other runs keep changing the description of the corpus")


def end_use(me: Holder, resource: str) -> Steps[tuple[str, ...]]:
    """Delete a corpus unless other runs need it; returns these runs, or () if it was deleted."""
    try:
        about = yield from read_about(resource)
        if others := _other_users(about, me):
            yield from work.update_corpus(resource, replace(about, users=others))
            yield [pause(_SETTLE_S)]  # the other runs may have ended at this moment, too
            others = _other_users((yield from read_about(resource)), me)
    except CallError as error:
        if error.kind is FailureKind.NOT_FOUND:
            return ()
        raise
    if others:
        return tuple(sorted(key.partition(" ")[0] for key in others))
    yield from work.delete_corpus(resource)
    return ()


def _other_users(about: CorpusDescription, me: Holder) -> dict[str, Any]:
    """The other runs that need a corpus, without those whose processes on this machine have ended."""
    return {
        key: user
        for key, user in about.users.items()
        if key != _key(me)
        and not (user.get("machine") == me.machine and process.start_time(user["pid"]) != user["pid_started"])
    }


def _key(holder: Holder) -> str:
    return f"{holder.run_id} {holder.run_started}"


def has_ended(holder: Holder, me: Holder) -> bool:
    """Return whether a claim's process was on this machine, and has ended."""
    return holder.machine == me.machine and process.start_time(holder.pid) != holder.pid_started
