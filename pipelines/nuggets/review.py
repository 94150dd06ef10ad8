"""Nuggets as a table for people to review, and the file of reference answers with their changes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rankbeam.pipelines.nuggets.make import Row, rows_of
from rankbeam.transforms.clients.formats.syntax.spreadsheets import as_csv, read_text, table_rows
from rankbeam.transforms.clients.storage import whole_files
from rankbeam.transforms.goldens.parts import json_lines
from rankbeam.transforms.kernels.grouping import grouped
from rankbeam.transforms.records.errors import InputError, InputErrors, did_you_mean, pluralize, shortened
from rankbeam.transforms.records.labels import short_name

COLUMNS = ("id", "query_id", "query", "nugget", "vital", "decision", "documents")
_NEEDED = COLUMNS[:6]
_YES, _NO, _KEEP, _DROP = "yes", "no", "keep", "drop"


@dataclass(frozen=True)
class ReviewedNugget:
    """One row of a table: a nugget after review; `item_id` is empty for a new one."""

    item_id: str
    query_id: str
    text: str
    is_vital: bool
    is_dropped: bool


def item_id_of(query_id: str, text: str) -> str:
    """The id of a nugget in the table, which stays the same when people edit the text.

    >>> len(item_id_of("q1", "a fact"))
    16
    """
    return short_name(f"{query_id}\0{text}")


def reviewable(path: str) -> str:
    """The nuggets in a file of reference answers, as CSV."""
    rows = rows_of(path)
    if not any(row.get("nuggets") for row in rows.values()):
        raise InputError("has no nuggets to review; collect them with rankbeam nuggets EXPERIMENT.yaml", path=path)
    return as_csv(COLUMNS, _table(rows.values()))


def _table(rows: Iterable[Row]) -> Iterator[dict[str, str]]:
    for row in rows:
        for nugget in row.get("nuggets") or ():
            query_id, text = str(row["query_id"]), nugget["text"]
            cells = (
                item_id_of(query_id, text),
                query_id,
                row.get("query") or "",
                text,
                _YES if nugget.get("vital", True) else _NO,
                "",
                " ".join(_evidence(row).get(text) or ()),
            )
            yield dict(zip(COLUMNS, cells, strict=True))


def apply_review(path: str, table: str) -> str:
    """Apply the changes in a table to a file of reference answers; return a text about the changes.

    If the table has a mistake, nothing is written.
    """
    rows = rows_of(path)
    ids = {cells["id"]: cells["query_id"] for cells in _table(rows.values())}
    reviews = _read_reviews(table, rows, ids)
    counts: Counter[str] = Counter(missing=len(ids.keys() - {review.item_id for review in reviews}))
    for query_id, nuggets in grouped((review.query_id, review) for review in reviews).items():
        rows[query_id] = _reviewed_row(rows[query_id], nuggets, counts)
    whole_files.put(path, json_lines(row for row in rows.values() if _says_something(row)))
    edited = pluralize(counts["edited"], "nugget")
    parts = [f"{path}: {edited} edited, {counts['dropped']:,} dropped, {counts['added']:,} added"]
    parts += [f"{counts['unchanged']:,} are unchanged"]
    parts += [f"{counts['missing']:,} have no row in the table, and are kept"] if counts["missing"] else []
    parts += [f"{pluralize(counts['emptied'], 'query has', 'queries have')} none any more"] if counts["emptied"] else []
    return "; ".join(parts)


def _says_something(row: Row) -> bool:
    """Return whether a row still has content that `dataset.answers` reads."""
    has_text = bool(row.get("nuggets") or (row.get("answer") or "").strip())
    return has_text or row.get("expected_steps") is not None or row.get("answerable") is False


def _reviewed_row(row: Row, reviews: Iterable[ReviewedNugget], counts: Counter[str]) -> Row:
    """The row with the reviewed nuggets; adds to the counts of changes."""
    remaining = {review.item_id or f"new {place}": review for place, review in enumerate(reviews)}
    nuggets, evidence = [], {}
    for nugget in row.get("nuggets") or ():
        review = remaining.pop(item_id_of(str(row["query_id"]), nugget["text"]), None)
        if review is not None and review.is_dropped:
            counts["dropped"] += 1
            continue
        new = nugget if review is None else {**nugget, "text": review.text, "vital": review.is_vital}
        if review is not None:
            is_same = (nugget["text"], nugget.get("vital", True)) == (review.text, review.is_vital)
            counts["unchanged" if is_same else "edited"] += 1
        nuggets.append(new)
        if nugget["text"] in _evidence(row):
            evidence[new["text"]] = _evidence(row)[nugget["text"]]
    added = [{"text": review.text, "vital": review.is_vital} for review in remaining.values() if not review.is_dropped]
    counts["added"] += len(added)
    counts["emptied"] += bool(row.get("nuggets")) and not nuggets and not added
    more = {"evidence": evidence} if "evidence" in row else {}
    return {**row, "nuggets": [*nuggets, *added], **more}


def _evidence(row: Row) -> Mapping[str, list[str]]:
    evidence = row.get("evidence")
    return evidence if isinstance(evidence, dict) else {}


def _read_reviews(path: str, rows: Mapping[str, Row], ids: Mapping[str, str]) -> list[ReviewedNugget]:
    problems: list[InputError] = []
    result: list[ReviewedNugget] = []
    names: dict[str, int] = {}
    texts: dict[tuple[str, str], int] = {}
    for line, cells in table_rows(path, read_text(path), _NEEDED, "rankbeam nuggets --review"):
        try:
            new = _review(cells, rows, ids)
            if new.item_id and (first := names.setdefault(new.item_id, line)) != line:
                raise InputError(f"nugget {new.item_id} is in line {first} already; leave the id of a new nugget empty")
            if not new.is_dropped and (first := texts.setdefault((new.query_id, new.text), line)) != line:
                raise InputError(f"query {new.query_id!r} has this nugget in line {first} already; keep one")
        except InputError as error:
            problems.append(InputError(error.problem, path=path, line=line))
            continue
        result.append(new)
    for cells in _table(rows.values()):
        again = texts.get((cells["query_id"], cells["nugget"]))
        if again is not None and cells["id"] not in names:
            problem = f"is nugget {cells['id']}, whose row is missing; write its id, or another text"
            problems.append(InputError(problem, path=path, line=again))
    if problems:
        raise InputErrors(problems)
    if not result:
        raise InputError("has no rows", path=path)
    return result


def _review(cells: Mapping[str, str], rows: Mapping[str, Row], ids: Mapping[str, str]) -> ReviewedNugget:
    item_id, query_id, text = (cells[name].strip() for name in ("id", "query_id", "nugget"))
    if item_id and item_id not in ids:
        raise InputError(f"there is no nugget {shortened(item_id)!r}; leave the id of a new nugget empty")
    if item_id and ids[item_id] != query_id:
        raise InputError(f"nugget {item_id} belongs to query {ids[item_id]!r}, not {shortened(query_id)!r}")
    if query_id not in rows:
        raise InputError(f"no query {shortened(query_id)!r} has nuggets; {did_you_mean(query_id, list(rows))}")
    decision = _word(cells["decision"], (_KEEP, _DROP), _KEEP, "decision")
    vital = _word(cells["vital"], (_YES, _NO), _YES, "vital")
    if not text and decision != _DROP:
        raise InputError(f"has an empty nugget; to delete it, write {_DROP} in the column decision")
    return ReviewedNugget(item_id, query_id, text, vital == _YES, decision == _DROP)


def _word(cell: str, known: tuple[str, ...], default: str, column: str) -> str:
    word = {"true": _YES, "false": _NO}.get(cell.strip().lower(), cell.strip().lower()) or default
    if word not in known:
        raise InputError(f"unknown value {shortened(cell)!r} in the column {column}; {did_you_mean(word, known)}")
    return word
