"""An experiment's dataset for other tools: an EvalSet for ADK, or rows for Vertex's evaluation service."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rankbeam.pipelines.experiment.experiment import Experiment
from rankbeam.pipelines.results.corpus import stored_texts
from rankbeam.pipelines.results.find import find_run
from rankbeam.pipelines.results.leaderboard import configuration_named
from rankbeam.transforms.clients.formats import texts
from rankbeam.transforms.clients.formats.cases.google import CaseTurn, ModelAnswer, case_of, eval_set, row_of, turns_in
from rankbeam.transforms.clients.formats.references import reference_rows
from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.clients.storage.json_paths import parse_literal
from rankbeam.transforms.goldens.parts import json_lines
from rankbeam.transforms.records.conversations import CONVERSATION, history_of
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.trajectories import EXPECTED_STEPS, has_steps, in_rows, steps_in

_ROWS = ".jsonl"


def write_eval_set(experiment: Experiment, path: str) -> tuple[str, int, int]:
    """Write an experiment's queries; return the path, and the numbers of cases and of queries in them."""
    queries = list(_queries(experiment))
    if not queries:
        raise InputError("dataset.queries is missing or empty; an EvalSet is made of queries")
    cases = list(_cases(queries))
    full, text = eval_set(path, experiment.name, cases)
    files.refuse_existing(full)
    files.write(full, text.encode())
    return full, len(cases), len(queries)


def write_vertex_rows(experiment: Experiment, path: str, configuration: str | None) -> tuple[int, int]:
    """Write an experiment's queries as rows; return the numbers of rows and of queries without an answer.

    With a configuration, which answered in the last run, queries without an answer are left out, because the service
    accepts no row without a response.
    """
    if not path.endswith(_ROWS):
        raise InputError(f"the service reads files whose names end with {_ROWS}; name one", path=path)
    files.refuse_existing(path)
    answers = None if configuration is None else _answers(experiment, configuration)
    queries = list(_queries(experiment))
    rows = [
        row_of(entry.id, turn, history_of(entry.attributes), None if answers is None else answers[entry.id])
        for entry, turn in queries
        if answers is None or entry.id in answers
    ]
    if not rows:
        raise InputError("no query has an answer" if queries else "dataset.queries is missing or empty", path=path)
    files.write(path, json_lines(rows))
    return len(rows), len(queries) - len(rows)


def _answers(experiment: Experiment, configuration: str) -> dict[str, ModelAnswer]:
    """A configuration's first answers in the last run, with their contexts, by query; without failed ones."""
    run = find_run(experiment.output, None, experiment.name)
    config_id, texts = configuration_named(run, configuration)["config_id"], stored_texts(run)
    return {
        row["query_id"]: ModelAnswer(
            row["answer"],
            tuple(texts[context["text_hash"]] for context in row["contexts"]) or None,  # [] also if they are unknown
            None if row.get("steps") is None else steps_in(json.loads(row["steps"])),
        )
        for row in run.stream("answers", ("config_id", "query_id", "sample", "answer", "contexts", "steps"))
        if row["config_id"] == config_id and row["sample"] == 0 and row["answer"]
    }


def _queries(experiment: Experiment) -> Iterator[tuple[texts.TextEntry, CaseTurn]]:
    gold = _references(experiment)
    name = "" if experiment.dataset.references is None else experiment.dataset.references.attribute
    queries = experiment.dataset.queries
    for _, entry in () if queries is None else texts.entries_in(queries, "queries"):
        steps = parse_literal(entry.attributes.get(EXPECTED_STEPS))
        expected = steps_in(steps) if name and has_steps(steps) else None
        stated = CaseTurn(entry.text, entry.attributes.get(name) or None, expected)
        yield entry, replace(gold.get(entry.id, stated), question=entry.text)


def _references(experiment: Experiment) -> Mapping[str, CaseTurn]:
    path = None if experiment.dataset.references is None else experiment.dataset.references.path
    return {
        row["query_id"]: CaseTurn("", row["reference"]["answer"], in_rows(row["reference"][EXPECTED_STEPS]))
        for row in ([] if path is None else reference_rows(path))
    }


def _cases(queries: list[tuple[texts.TextEntry, CaseTurn]]) -> Iterator[dict[str, Any]]:
    """One case for each conversation; turns without a query come from the history of a later turn."""
    talks: defaultdict[str, dict[int, tuple[texts.TextEntry, CaseTurn]]] = defaultdict(dict)
    for entry, turn in queries:
        number = len(turns_in(history_of(entry.attributes)))
        talk = talks[f"c {entry.attributes[CONVERSATION]}" if CONVERSATION in entry.attributes else f"q {entry.id}"]
        if number in talk:
            problem = f"queries {talk[number][0].id!r} and {entry.id!r} of the conversation"
            problem += f" {entry.attributes.get(CONVERSATION)!r} have equally many turns before them"
            raise InputError(f"{problem}; give later turns their history, or leave out the attribute {CONVERSATION}")
        talk[number] = entry, turn
    for talk in talks.values():
        last = talk[max(talk)][0]
        turns = [*turns_in(history_of(last.attributes)), CaseTurn("")]
        complete = [talk[place][1] if place in talk else turn for place, turn in enumerate(turns)]
        name = last.attributes.get(CONVERSATION) if len(complete) > 1 else None
        yield case_of(name or last.id, complete)
