"""The command `rankbeam ledger`: show the ledger of finished calls, clear it, or merge its files."""

import glob
import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.show.tabular import WHOLE, Screen, Table, bytes_text
from rankbeam.transforms.clients.ledger import store
from rankbeam.transforms.clients.ledger.merging import CompactionResult
from rankbeam.transforms.clients.ledger.merging import compact as merge_parts
from rankbeam.transforms.clients.ledger.survey import ClearResult, LedgerSurvey, clear, services_in, survey
from rankbeam.transforms.clients.storage import files, gcs
from rankbeam.transforms.records.errors import InputError, did_you_mean, json_text, pluralize

_NAME = "ledger"
_MOST_SERVICES = 20  # that are shown; JSON has all
_SPANS = (("year", 31_536_000), ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))
_MOST_FOREIGN = 10


def run(
    place: str,
    clear: bool,
    older_than_days: float | None,
    form: str,
    *,
    service: str | None = None,
    compact: bool = False,
    screen: Screen = WHOLE,
) -> str:
    """Show, clear or compact a ledger; return the text to print."""
    if compact and clear:
        raise InputError("--clear and --compact cannot run together; choose one")
    if not clear and (older_than_days is not None or service is not None):
        option = "--older-than" if service is None else "--service"
        raise InputError(f"{option} limits --clear; add --clear")
    folder = ledger_folder(place)
    if compact:
        compacted = merge_parts(folder)
        document = {"folder": folder, **asdict(compacted)}
        return json.dumps(document, indent=2) if form == "json" else _compacted_text(folder, compacted)
    if not clear:
        summary = survey(folder)
        return as_json(summary) if form == "json" else show(summary, screen=screen)
    cleared = _clear_ledger(folder, older_than_days, service)
    if form == "json":
        return json.dumps({"folder": folder, **asdict(cleared)}, indent=2)
    return _cleared_text(folder, cleared, service)


def question(place: str, older_than_days: float | None, service: str | None = None) -> str:
    """Question before a ledger is cleared."""
    age = "" if older_than_days is None else f" older than {older_than_days:g} days"
    of_service = "" if service is None else f" of {service}"
    return f"Delete the answers{of_service} in {ledger_folder(place)}{age}? The next run pays for their calls again."


def ledger_folder(place: str) -> str:
    if _is_file(place):
        return load_experiment(place).ledger
    place = place.rstrip("/") or place
    inner = files.join(place, _NAME)
    if _holds_ledger(inner):
        return inner
    if _holds_ledger(place) or (place.rpartition("/")[2] == _NAME and _exists(place)):
        return place
    if not _exists(place):
        raise InputError("no such output folder, ledger or experiment", path=place)
    return inner


def show(survey: LedgerSurvey, now: datetime | None = None, screen: Screen = WHOLE) -> str:
    if not (survey.files or survey.runs or survey.damaged):
        return f"{survey.folder} holds no finished calls. Runs with remote retrievers write them there."
    now = now or datetime.now(UTC)
    lines = [f"ledger   {survey.folder}", f"answers  {survey.entries:,}{_duplicates_text(survey)}"]
    if survey.services:
        more = f" and {further:,} more" if (further := len(survey.services) - _MOST_SERVICES) > 0 else ""
        lines.append(f"services {', '.join(survey.services[:_MOST_SERVICES])}{more}")
    lines.append(f"size     {bytes_text(survey.bytes)} in {pluralize(survey.files, 'file')}")
    if survey.oldest is not None and survey.newest is not None:
        ages = dict.fromkeys((_span(now - survey.newest), _span(now - survey.oldest)))
        lines.append(f"age      {' to '.join(ages)}")
    lines.append(f"calls    took {_span(timedelta(seconds=survey.seconds))} in all")
    lines.append(f"hits     {pluralize(survey.hits, 'call')} saved, {pluralize(survey.calls, 'call')} made")
    if survey.lost:
        lines.append(f"lost     {pluralize(survey.lost, 'call')} in flight when a run was killed, maybe charged")
    return "\n".join([*lines, *_runs(survey, now, screen), *_damage(survey), *_foreign(survey)])


def as_json(survey: LedgerSurvey) -> str:
    """A survey as one JSON document; times are in UTC."""
    document = {**asdict(survey), "hits": survey.hits, "calls": survey.calls}
    document["damaged"] = [{"path": path, "reason": reason} for path, reason in survey.damaged]
    return json_text(document, default=lambda moment: moment.isoformat())


def _clear_ledger(folder: str, older_than_days: float | None, service: str | None) -> ClearResult:
    if older_than_days is None:
        return clear(folder, service=service)
    if not older_than_days >= 0:
        raise InputError(f"--older-than is a number of days, at least 0; found {older_than_days}")
    try:
        age = timedelta(days=older_than_days)
        return clear(folder, age, service)
    except OverflowError:  # older than any date
        return ClearResult(0, 0, 0)


def _cleared_text(folder: str, cleared: ClearResult, service: str | None) -> str:
    if not cleared.files and service is not None:
        known = services_in(folder)
        hint = f"; {did_you_mean(service, known)}" if known and service not in known else ""
        return f"{folder}: no answer of {service!r} to clear{hint}"
    if not cleared.files:
        return f"{folder}: nothing to clear"
    answers = pluralize(cleared.answers, "answer")
    answers += f", {bytes_text(cleared.bytes)} in {pluralize(cleared.files, 'file')}"
    return f"{folder}: cleared {answers}"


def _compacted_text(folder: str, compacted: CompactionResult) -> str:
    before = f"{pluralize(compacted.files_before, 'file')} of {bytes_text(compacted.bytes_before)}"
    if compacted.files_after == compacted.files_before:
        return f"{folder}: {before}, none to merge"
    return f"{folder}: {before} became {compacted.files_after:,} of {bytes_text(compacted.bytes_after)}"


def _is_file(place: str) -> bool:
    if files.is_local(place):
        return Path(place).is_file()
    return place.endswith((".yaml", ".yml"))


def _holds_ledger(folder: str) -> bool:
    return bool(store.parts_in(folder) or store.uses_in(folder) or store.journals_in(folder))


def _exists(place: str) -> bool:
    if files.is_local(place):
        return Path(place).is_dir()
    try:  # an object store has no folders, only names with a common beginning
        return bool(files.beam().match([files.join(glob.escape(place), "**")], limits=[1])[0].metadata_list)
    except files.errors(place) as error:
        raise InputError(f"cannot be looked up: {gcs.error_text(error, place)}", path=place) from error


def _runs(survey: LedgerSurvey, now: datetime, screen: Screen) -> list[str]:
    if not survey.runs:
        return []
    rows = [(run.run_id, f"{run.hits:,}", f"{run.calls:,}", f"{_span(now - run.last)} ago") for run in survey.runs]
    return ["", screen.table(Table(["run", "hits", "calls", "last used"], rows))]


def _damage(survey: LedgerSurvey) -> list[str]:
    if not survey.damaged:
        return []
    lines = [f"  {path}: {reason}" for path, reason in survey.damaged]
    return ["", f"{pluralize(len(lines), 'damaged file')}, of which only the undamaged content is used:", *lines]


def _foreign(survey: LedgerSurvey) -> list[str]:
    if not survey.foreign:
        return []
    more = len(survey.foreign) - _MOST_FOREIGN
    lines = [f"  {path}" for path in survey.foreign[:_MOST_FOREIGN]] + ([f"  and {more:,} more"] if more > 0 else [])
    count = pluralize(len(survey.foreign), "file")
    return ["", f"{count} of other programs, neither read nor cleared:", *lines]


def _duplicates_text(survey: LedgerSurvey) -> str:
    more = survey.answers - survey.entries
    return f", and {more:,} older or lesser ones to the same calls" if more else ""


def _span(time: timedelta) -> str:
    """A duration as text, in the largest unit of which it has at least two.

    >>> _span(timedelta(minutes=180)), _span(timedelta(seconds=90)), _span(timedelta(seconds=1))
    ('3 hours', '90 seconds', '1 second')
    """
    seconds = max(0.0, time.total_seconds())
    name, unit = next(((name, unit) for name, unit in _SPANS if seconds >= 2 * unit), _SPANS[-1])
    return pluralize(int(seconds // unit), name)
