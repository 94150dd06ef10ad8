"""Results of gate checks: a table, JSON, Markdown for a pull request, and JUnit's XML for a CI server."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rankbeam.pipelines.compare.shared_queries import shared_queries
from rankbeam.pipelines.gates.checks import Check
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.show.tabular import NO_VALUE, WHOLE, Screen, Table, markdown_table, markdown_text, number
from rankbeam.transforms.records.errors import json_text, pluralize
from rankbeam.transforms.records.slices import ALL

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def summary(checks: Sequence[Check]) -> str:
    missed, skipped = sum(not check.is_met for check in checks), sum(check.is_skipped for check in checks)
    new = f", {skipped} new" if skipped else ""
    state = "missed" if missed else "met"
    return f"{missed or len(checks) - skipped} of {pluralize(len(checks), 'gate check')} {state}{new}"


def as_text(checks: Sequence[Check], screen: Screen = WHOLE) -> str:
    return screen.table(_table(checks))


def as_json(checks: Sequence[Check], run: Results, other: Results | None) -> str:
    shared = shared_queries(run, other)
    document = {
        **run.identity(),
        "baseline_run": None if other is None else other.identity(),
        "queries": None if shared is None else asdict(shared),
        "met": all(check.is_met for check in checks),
        "checks": [_document(check) for check in checks],
    }
    return json_text(document, allow_nan=False)


def as_markdown(checks: Sequence[Check], run: Results, other: Results | None) -> str:
    against = "" if other is None else f", against {other.named}, in {other.output}"
    shared = shared_queries(run, other)
    grown = "" if shared is None else f" {shared.sentence[0].upper()}{shared.sentence[1:]}."
    about = markdown_text(f"Run {run.run_id} of {run.experiment} in {run.output}{against}.{grown}")
    return f"### rankbeam: {summary(checks)}\n\n{markdown_table(_table(checks))}\n\n{about}\n"


def as_junit(checks: Sequence[Check], run: Results) -> bytes:
    missed, skipped = str(sum(not entry.is_met for entry in checks)), str(sum(entry.is_skipped for entry in checks))
    counts = {"tests": str(len(checks)), "failures": missed, "errors": "0"}
    suites = ET.Element("testsuites", counts)
    name, timestamp = _xml(f"rankbeam gates of {run.run['experiment']}"), run.run["started_at"].isoformat()
    suite = ET.SubElement(suites, "testsuite", {"name": name, "timestamp": timestamp, "skipped": skipped, **counts})
    for check in checks:
        where = "" if check.slice == ALL else f" over {check.slice}"
        case = {"classname": check.configuration or "rankbeam", "name": f"{_what(check)} {_limit(check)}{where}"}
        element = ET.SubElement(suite, "testcase", {key: _xml(text) for key, text in case.items()} | {"time": "0"})
        if check.is_skipped:
            ET.SubElement(element, "skipped", {"message": _xml(f"new: {check.reason}")})
        elif not check.is_met:
            message = _xml(_failure_message(check))
            ET.SubElement(element, "failure", {"type": "MissedGate", "message": message}).text = message
    ET.indent(suites)
    content: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return content


def _table(checks: Sequence[Check]) -> Table:
    columns = ["gate", "configuration", "slice", "what", "found", "limit", "by"]
    why = any(check.reason for check in checks)
    rows = [
        [
            _state(check).replace("missed", "MISSED"),
            check.configuration or NO_VALUE,
            check.slice,
            _what(check),
            number(check.measured),
            _limit(check),
            number(check.margin, "+.4g"),
            *([check.reason] if why else []),
        ]
        for check in checks
    ]
    drop = ["by", *(["slice"] if all(check.slice == ALL for check in checks) else [])]
    return Table([*columns, *(["why"] if why else [])], rows, 4, drop=drop, sentences=["why"])


def _document(check: Check) -> dict[str, Any]:
    about = {"state": _state(check), "reason": check.reason}
    return {"configuration": check.configuration or None, **check.facts(), **about}


def _state(check: Check) -> str:
    if check.is_skipped:
        return "new"
    return "met" if check.is_met else "missed"


def _what(check: Check) -> str:
    return f"{check.gate.metric} {check.gate.value}".strip()


def _limit(check: Check) -> str:
    return f"{'≥' if check.gate.at_least else '≤'} {check.gate.limit:.12g}"


def _failure_message(check: Check) -> str:
    if check.measured is None or check.margin is None:
        return f"there is no value: {check.reason}"
    side = "below" if check.gate.at_least else "above"
    return f"{number(check.measured)} is {-check.margin:.4g} {side} the limit of {check.gate.limit:.12g}"


def _xml(text: str) -> str:
    """A text without the characters that XML cannot hold."""
    return _NOT_IN_XML.sub("�", text)
