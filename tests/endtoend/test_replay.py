"""Answers that exist already, through the command line: judged as those that rankbeam's own models give."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import runs
from support.cli import Outcome, rankbeam
from support.inputs import trec_qrels, write, write_table

from rankbeam.transforms.clients.formats.replay import ReplayReader
from rankbeam.transforms.clients.formats.syntax import json_lines
from rankbeam.transforms.records.columns import REPLAYED
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.retrieve.replay import match_answers

METRICS = (
    "nDCG@3", "R@3", "Faithfulness", "AnswerRelevance", "ClaimRecall", "ContextRecall", "ContextRelevance@2",
    "CitationPrecision", "Refused",
)  # fmt: skip
DOCUMENTS = {
    "owners": "Owners pay the invoices. They get a mail each month.",
    "managers": "Billing managers may read invoices, and download them as a file.",
    "weather": "It rains in spring. The garden is green.",
    "keys": "A lost key is replaced within two days. The old key is blocked at once.",
    "doors": "The door opens with a key or a code. The code changes each month.",
}
QUERIES = {
    "q1": ("Who pays the invoices?", "Owners pay the invoices."),
    "q2": ("Who may download invoices?", "Billing managers may download invoices as a file."),
    "q3": ("What happens when a key is lost?", "A lost key is replaced. The old key is blocked."),
    "q4": ("How does the door open?", "The door opens with a code that changes each month."),
}
QRELS = [("q1", "owners", 1), ("q2", "managers", 1), ("q2", "owners", 1), ("q3", "keys", 1), ("q4", "doors", 1)]
HEAD = """
name: replayed
dataset: {queries: queries.jsonl, corpus: corpus.jsonl, qrels: qrels.txt, answers: reference}
services: {reader: {type: extractive}, overlap: {type: lexical}}
judge: {service: overlap, repeat_share: 0}
statistics: {replicates: 0}
"""
OWN = (
    HEAD
    + """
configurations:
  - {name: short, retriever: {type: bm25}, top_k: 2, generate: {service: reader, contexts: 2}}
  - {name: long, retriever: {type: bm25}, top_k: 3, generate: {service: reader, contexts: 3}}
"""
)
ONE = HEAD + "configurations: [{name: prod, answers: {type: replay, path: answers.jsonl}}]\n"
SWEPT = ONE + "grid: {config: [short, long]}\n"
SEVERAL = (
    HEAD
    + """
max_failure_rate: 0.5
configurations:
  - {name: no ids, answers: {type: replay, path: answers.jsonl, config: no ids}}
  - {name: no contexts, answers: {type: replay, path: answers.jsonl, config: no contexts}}
  - {name: sparse, answers: {type: replay, path: answers.jsonl, config: sparse}}
"""
)
Rows = Sequence[Mapping[str, Any]]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of two configurations of which rankbeam itself makes the answers."""
    folder = tmp_path_factory.mktemp("own")
    dataset(folder)
    runs.evaluated(experiment(folder, OWN))
    return folder


@pytest.mark.long
def test_given_answers_have_the_values_of_the_configurations_that_made_them(own: Path, tmp_path: Path) -> None:
    dataset(tmp_path)
    answers(tmp_path, written_out(own))
    done = evaluated(tmp_path, SWEPT)
    assert (done.status, "answers" in done.stderr) == (0, False)
    assert values(tmp_path) == values(own)
    assert rankings(tmp_path) == rankings(own)
    own_rows, given_rows = (by_query(folder, "answers") for folder in (own, tmp_path))
    assert set(given_rows) == set(own_rows)
    for key, row in given_rows.items():
        assert {name: row[name] for name in ("service", "model", "cost")} == dict.fromkeys(("service", "model", "cost"))
        assert all(row[name] == own_rows[key][name] for name in ("answer", "contexts", "citations", "status"))


@pytest.fixture(scope="module")
def several(own: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """The run of one file with the answers of three systems, in each of which something is missing."""
    folder = tmp_path_factory.mktemp("several")
    dataset(folder)
    rows = {name: [{**row, "config": name} for row in written_out(own, "long")] for name in ("no ids", "no contexts")}
    for row in rows["no ids"]:
        if row["query_id"] == "q2":
            del row["contexts"][0]["doc_id"]
    for row in rows["no contexts"]:
        del row["contexts"]
    sparse = [
        {"query_id": entry, "answer": "Owners pay.", "contexts": [], "config": "sparse"}
        for entry in ("q1", "q2", "q4", "x1", "x2")
    ]
    answers(folder, [*rows["no ids"], *rows["no contexts"], *sparse])
    return folder, evaluated(folder, SEVERAL)


@pytest.mark.long
def test_contexts_without_ids_are_judged_and_have_no_ranking(own: Path, several: tuple[Path, Outcome]) -> None:
    folder, done = several
    assert "1 answer with contexts without doc_id; metrics of rankings are missing there" in done.stderr
    expected = {("no ids", *key): value for (name, *key), value in values(own).items() if name == "long"}
    del expected["no ids", "q2", "nDCG@3"], expected["no ids", "q2", "R@3"]
    assert {key: value for key, value in values(folder).items() if key[0] == "no ids"} == expected
    assert by_query(folder, "query_metrics")["no ids", "q2"]["status"] == "missing"
    contexts = by_query(folder, "answers")["no ids", "q2"]["contexts"]
    assert [entry["doc_id"] is None for entry in contexts] == [True] + [False] * (len(contexts) - 1)


def test_an_answer_that_does_not_say_its_contexts_is_judged_without_them(
    own: Path, several: tuple[Path, Outcome]
) -> None:
    folder, done = several
    assert "4 answers without a list of contexts" in done.stderr
    assert "no result for any judged query" not in done.stderr
    actual, before = values(folder), values(own)
    for query in QUERIES:
        of_query = {metric: value for (*key, metric), value in actual.items() if key == ["no contexts", query]}
        needing = ("Faithfulness", "ContextRecall", "ContextRelevance@2", "CitationPrecision")
        others = ("AnswerRelevance", "ClaimRecall", "Refused")
        assert of_query == {shown(metric): (None, "undefined") for metric in needing} | {
            shown(metric): before["long", query, shown(metric)] for metric in others
        }


def test_a_query_without_an_answer_has_failed_and_an_answer_without_a_query_is_counted(
    several: tuple[Path, Outcome],
) -> None:
    folder, done = several
    assert done.status == 0
    assert "2 answers to queries that are not evaluated, such as 'x1'" in done.stderr
    actual = {key: value for key, value in values(folder).items() if key[0] == "sparse"}
    assert {status for (_, query, _), (_, status) in actual.items() if query == "q3"} == {"failed"}
    assert actual["sparse", "q1", "nDCG@3"] == (0.0, "empty")
    problem = f"{folder}/answers.jsonl (config 'sparse') has no answer to the query"
    failures = {(row["query_id"], row["stage"], row["kind"], row["message"]) for row in table(folder, "failures")}
    assert failures == {
        ("q3", "replay", "not_found", problem),
        ("q3", "judge", "not_found", f"not judged: {problem}"),
    }
    assert "1 query has no answer (not_found): " in done.stderr
    assert "7 judged values are missing (not_found): not judged: " in done.stderr
    row = by_query(folder, "answers")["sparse", "q3"]
    assert (row["status"], row["message"], row["answer"]) == ("failed", problem, None)


@pytest.mark.campaign
def test_answers_that_nothing_judges_are_kept_as_they_are(own: Path, tmp_path: Path) -> None:
    dataset(tmp_path)
    answers(tmp_path, written_out(own))
    unjudged = SWEPT.replace("judge: {service: overlap, repeat_share: 0}\n", "")
    path = write(tmp_path / "e.yaml", f"{unjudged}metrics: [nDCG@3, R@3]\noutput: {{path: out}}\n".lstrip())
    done = rankbeam("evaluate", path)
    assert done.status == 0, done.stderr
    columns = ("answer", "contexts", "citations", "status")
    assert {key: [row[name] for name in columns] for key, row in by_query(tmp_path, "answers").items()} == {
        key: [row[name] for name in columns] for key, row in by_query(own, "answers").items()
    }
    assert sorted(written_out(tmp_path), key=repr) == sorted(written_out(own), key=repr)
    assert rankbeam("report", str(tmp_path / "out")).status == 0


WRONG = [
    ('{"query_id": "q1"}', "answers.jsonl:2: answer: is missing"),
    ('{"query_id": "q1", "answer": " "}',
     "answers.jsonl:2: answer: is empty; if a query has no answer, leave out its line; the query then counts as"),
    ('{"query_id": "q1", "answer": 3}', "answers.jsonl:2: answer: must be a text"),
    ('{"answer": "a"}', "answers.jsonl:2: query_id: is missing"),
    ('{"query_id": ["q1"], "answer": "a"}', 'answers.jsonl:2: the id is ["q1"]; an id is a text or a number'),
    ('{"query_id": "q1", "answer": "a", "contexts": "d1"}',
     "answers.jsonl:2: contexts: must be a list"),
    ('{"query_id": "q1", "answer": "a", "contexts": [{"doc_id": {}, "text": "t"}]}',
     "answers.jsonl:2: the id is {}; an id is a text or a number"),
    ('{"query_id": "q1", "answer": "\\ud83d"}',
     "answers.jsonl:2: holds half a character (a lone surrogate such as \\ud83d)"),
    ('["q1", "a"]', "answers.jsonl:2: expected a JSON object, found list"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), WRONG)
def test_a_wrong_line_is_refused_with_its_number(tmp_path: Path, line: str, expected: str) -> None:
    path = write(tmp_path / "answers.jsonl", '{"query_id": "q0", "answer": "a"}\n' + line + "\n")
    with pytest.raises(InputError) as caught:
        list(ReplayReader(None)(path))
    assert str(caught.value).startswith(f"{tmp_path}/{expected}")


@pytest.mark.parametrize("seconds", ["1e999", "9" * 400, "-1", "NaN", "true", '"fast"'])
def test_durations_that_no_clock_shows_are_not_known(tmp_path: Path, seconds: str) -> None:
    path = write(tmp_path / "answers.jsonl", f'{{"query_id": "q", "answer": "a", "seconds": {seconds}}}\n')
    assert [row["seconds"] for batch in ReplayReader(None)(path) for row in batch.to_pylist()] == [None]


def test_a_query_with_two_answers_is_refused_with_both_lines(tmp_path: Path) -> None:
    dataset(tmp_path)
    answers(tmp_path, [{"query_id": entry, "answer": "a"} for entry in ("q1", "q2", "q1")])
    done = evaluated(tmp_path, ONE)
    assert done.status == 2
    assert (
        f"{tmp_path}/answers.jsonl:3: query 'q1' has two answers (also at line 1); keep one, or take all as samples: "
        "answers: {samples: keep}; if several systems gave them, name one: answers: {config: …}, and the key that "
        "holds their names, if it is another one: columns: {config: KEY}" in done.stderr
    )


@pytest.mark.long
def test_samples_that_are_kept_have_the_mean_of_their_values(own: Path, tmp_path: Path) -> None:
    dataset(tmp_path)
    rows = [{name: value for name, value in row.items() if name != "config"} for row in written_out(own)]
    answers(tmp_path, rows)
    done = evaluated(tmp_path, ONE.replace("answers.jsonl}", "answers.jsonl, samples: keep}"))
    assert done.status == 0, done.stderr
    assert f"{len(QUERIES)} queries have several answers" in done.stderr
    before, actual = values(own), values(tmp_path)
    for metric in map(shown, ("Faithfulness", "AnswerRelevance", "ClaimRecall", "CitationPrecision", "Refused")):
        for query in QUERIES:
            both = [before[name, query, metric] for name in ("short", "long")]
            numbers = [value for value, _ in both if value is not None]
            value, status = actual["prod", query, metric]
            expected = (sum(numbers) / len(numbers), "ok") if numbers else (None, "undefined")
            assert (value, status) == pytest.approx(expected, abs=1e-12), (metric, query)
    assert sorted(row["sample"] for row in table(tmp_path, "answers")) == sorted([0, 1] * len(QUERIES))
    first = {name: min(row["answer"] for row in rows if row["query_id"] == name) for name in QUERIES}
    own_rankings = rankings(own)
    for (_, name), documents in rankings(tmp_path).items():
        of = [row for row in written_out(own) if (row["query_id"], row["answer"]) == (name, first[name])]
        assert documents in [own_rankings[row["config"], name] for row in of]


def test_an_empty_answer_beside_others_is_no_sample_and_a_query_with_none_but_empty_ones_has_failed() -> None:
    rows = [("q1", "b"), ("q1", None), ("q1", "a"), ("q2", None), ("q2", None), ("q3", "c"), ("x", "d"), ("x", "e")]
    batch = pa.RecordBatch.from_pylist(
        [{"query_id": query, "answer": answer} for query, answer in rows], schema=REPLAYED
    )
    queries = pa.array(["q1", "q2", "q3", "q4"])
    golden = batch.slice(0, 2)  # DeepEval writes its goldens, which have no answers, before its test cases
    known, _, _, tally = match_answers(queries, [golden], keeps_samples=False)
    assert (known["answer"].to_pylist(), tally.empty_samples, tally.sampled) == (["b"], 1, 0)
    known, lacking, empty, tally = match_answers(queries, [batch], keeps_samples=True)
    assert known.select(["query_id", "answer"]).to_pylist() == [
        {"query_id": query, "answer": answer} for query, answer in (("q1", "a"), ("q1", "b"), ("q3", "c"))
    ]
    assert (lacking, empty) == (["q4"], ["q2"])
    assert (tally.foreign, tally.empty_samples, tally.sampled) == (2, 1, 1)  # q2 has failed


def test_a_file_without_answers_is_refused(tmp_path: Path) -> None:
    dataset(tmp_path)
    write_table(tmp_path / "answers.jsonl", {"name": ["q1"], "said": ["a"]})
    done = evaluated(tmp_path, ONE)
    assert done.status == 2
    assert (
        "no key of these rows is known as the question; name it: columns: {question: KEY}; keys: name, said"
        in done.stderr
    )


def test_a_system_that_no_answer_is_of_is_refused_with_the_line_of_the_experiment(tmp_path: Path) -> None:
    dataset(tmp_path)
    answers(tmp_path, [{"query_id": "q1", "answer": "a", "config": "short"}])
    done = evaluated(tmp_path, ONE.replace("answers.jsonl}", "answers.jsonl, config: shrt}"))
    assert done.status == 2
    assert (
        f"{tmp_path}/e.yaml:6: configurations[0].answers.config: no answer in answers.jsonl has the config 'shrt'; "
        "did you mean 'short'?" in done.stderr
    )


@pytest.mark.long
@pytest.mark.parametrize("form", ["own", "of another tool"])
def test_a_file_of_many_systems_is_read_once_for_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    dataset(tmp_path)
    systems = [f"s{number}" for number in range(6)]
    rows = [
        {"query_id": query, "config": system, "answer": f"{system} to {query}", "contexts": []}
        for query in QUERIES
        for system in [*systems, "not evaluated"]
    ]
    other = [{"id": row["query_id"], "question": QUERIES[row["query_id"]][0], **row} for row in rows]
    for row in other:
        del row["query_id"]
    answers(tmp_path, rows if form == "own" else other)
    read = list[str]()
    numbered_lines = json_lines.numbered_lines

    def lines_of(path: str) -> Iterator[tuple[int, str]]:
        for line in numbered_lines(path):
            read.append(path)
            yield line

    monkeypatch.setattr(json_lines, "numbered_lines", lines_of)
    counts = []
    for number in (1, 3, 6):
        of = [f"{{name: {name}, answers: {{type: replay, path: answers.jsonl, config: {name}}}}}" for name in systems]
        read.clear()
        done = evaluated(tmp_path, HEAD + f"configurations: [{', '.join(of[:number])}]\n")
        assert done.status == 0, done.stderr
        counts.append(sum(path.endswith("answers.jsonl") for path in read))
        stored = {key: row["answer"] for key, row in by_query(tmp_path, "answers").items()}
        runs_so_far = {(system, query): f"{system} to {query}" for system in systems[:number] for query in QUERIES}
        assert stored == runs_so_far
    assert max(counts) - min(counts) < len(rows)  # only first lines, which show the form, are read for each system


def test_configurations_may_share_a_file_with_one_that_takes_all_of_it(tmp_path: Path) -> None:
    dataset(tmp_path)
    systems = ("a", "b", "")
    rows = [{"query_id": query, "config": name, "answer": f"by {name}"} for query in QUERIES for name in systems]
    answers(tmp_path, rows)
    selected = ("a, config: a", "all, samples: keep", "b, config: b")
    sources = [entry.replace(",", ", answers: {type: replay, path: answers.jsonl,") for entry in selected]
    done = evaluated(tmp_path, HEAD + f"configurations: [{', '.join(f'{{name: {entry}}}}}' for entry in sources)}]\n")
    assert done.status == 0, done.stderr
    of = names(tmp_path)
    stored = sorted((of[row["config_id"]], row["query_id"], row["answer"]) for row in table(tmp_path, "answers"))
    own = [(name, query, f"by {name}") for name in ("a", "b") for query in QUERIES]
    assert stored == sorted([*own, *(("all", row["query_id"], row["answer"]) for row in rows)])


def dataset(folder: Path) -> None:
    rows = [{"_id": name, "text": text, "reference": answer} for name, (text, answer) in QUERIES.items()]
    write(folder / "queries.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    documents = [{"_id": name, "text": text} for name, text in DOCUMENTS.items()]
    write(folder / "corpus.jsonl", "".join(f"{json.dumps(row)}\n" for row in documents))
    write(folder / "qrels.txt", trec_qrels(QRELS))


def answers(folder: Path, rows: Rows) -> None:
    write(folder / "answers.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))


def experiment(folder: Path, text: str) -> str:
    return write(folder / "e.yaml", f"{text}metrics: [{', '.join(METRICS)}]\noutput: {{path: out}}\n".lstrip())


def evaluated(folder: Path, text: str) -> Outcome:
    return rankbeam("evaluate", experiment(folder, text))


def table(folder: Path, name: str) -> Rows:
    rows: Rows = pq.read_table(folder / "out" / name).to_pylist()
    return rows


def names(folder: Path) -> dict[str, str]:
    return {row["config_id"]: row["name"].removeprefix("prod:config=") for row in table(folder, "configurations")}


def by_query(folder: Path, name: str) -> dict[tuple[str, str], Mapping[str, Any]]:
    of = names(folder)
    return {(of[row["config_id"]], row["query_id"]): row for row in table(folder, name)}


def values(folder: Path) -> dict[tuple[str, str, str], tuple[float | None, str]]:
    """By configuration, query and metric."""
    return {
        (*key, entry["metric"]): (entry["value"], entry["status"] or row["status"])
        for key, row in by_query(folder, "query_metrics").items()
        for entry in row["metrics"]
    }


def rankings(folder: Path) -> dict[tuple[str, str], list[str]]:
    return {key: [entry["doc_id"] for entry in row["documents"]] for key, row in by_query(folder, "rankings").items()}


def shown(metric: str) -> str:
    name, at, cutoff = metric.partition("@")
    return f"{name}(judge=lexical){at}{cutoff}"


def written_out(folder: Path, only: str = "") -> list[dict[str, Any]]:
    """The answers of a run, or of one of its configurations, as a file of answers has them."""
    texts = {row["text_hash"]: row["text"] for row in table(folder, "texts")}
    return [
        {
            "query_id": query,
            "config": name,
            "answer": row["answer"],
            "contexts": [{"doc_id": entry["doc_id"], "text": texts[entry["text_hash"]]} for entry in row["contexts"]],
        }
        for (name, query), row in by_query(folder, "answers").items()
        if name.startswith(only)
    ]
