"""`rankbeam init`: what it writes is valid as it is, names the files that were given, and replaces nothing."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from support.campaigns import in_campaigns
from support.data import REPOSITORY
from support.runs import rankbeam

from rankbeam.pipelines.start.first_experiment import EXAMPLES as EXAMPLES_BY_NAME
from rankbeam.pipelines.start.first_experiment import write_files

EXAMPLES = REPOSITORY / "examples"
TEMPLATES = ["bm25", "rag_engine", "http", "application", "judge"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, text: str) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
    return path


@pytest.mark.long
def test_every_template_is_valid_in_an_empty_folder() -> None:
    for template in TEMPLATES:
        outcome = rankbeam("init", f"{template}/first.yaml", "--template", template)
        assert outcome.exit_code == 0, outcome.stderr
        assert "queries.jsonl: from the helpdesk example" in outcome.stdout
        checked = rankbeam("validate", f"{template}/first.yaml")
        assert "first.yaml: valid." in checked.stdout, checked.stderr
        assert "warning" not in checked.stderr
        for line in Path(template, "first.yaml").read_text().splitlines():
            assert len(line) <= 120
        assert (
            Path(template, "first.yaml")
            .read_text()
            .startswith("# yaml-language-server: $schema=rankbeam.schema.json\n")
        )
        assert Path(template, "rankbeam.schema.json").read_text() == rankbeam("schema").stdout


def test_runs_are_compared_from_another_folder_and_under_names_that_need_quotes() -> None:
    shutil.copy(EXAMPLES / "helpdesk" / "qrels" / "test.tsv", "qrels.tsv")
    for source, name in (("stemmed", "12"), ("exact_words", "a, b: c")):
        shutil.copy(EXAMPLES / "trec_runs" / f"{source}.run", f"{name}.run")
    outcome = rankbeam("init", "sub/first.yaml", "--from", "qrels.tsv", "12.run", "a, b: c.run")
    assert outcome.exit_code == 0, outcome.stderr
    experiment = yaml.safe_load(Path("sub/first.yaml").read_text())
    assert experiment["dataset"] == {"qrels": "../qrels.tsv"}
    assert [
        (configuration["name"], configuration["retriever"]["path"]) for configuration in experiment["configurations"]
    ] == [
        ("12", "../12.run"),
        ("a, b: c", "../a, b: c.run"),
    ]
    assert rankbeam("validate", "sub/first.yaml").exit_code == 0


def test_own_documents_and_questions_are_judged_without_judgements() -> None:
    question = {"_id": "q1", "text": "what is red", "metadata": {"answer": "The apple is red."}}
    queries = write("in/questions.jsonl", json.dumps(question) + "\n")
    corpus = write("in/documents.jsonl", json.dumps({"_id": "d1", "text": "The apple is red."}) + "\n")
    outcome = rankbeam("init", "--template", "judge", "--queries", queries, "--corpus", corpus)
    assert outcome.exit_code == 0, outcome.stderr
    dataset = yaml.safe_load(Path("experiment.yaml").read_text())["dataset"]
    assert dataset == {"queries": queries, "corpus": corpus, "answers": "answer"}
    assert sorted(path.name for path in Path().iterdir()) == ["experiment.yaml", "in", "rankbeam.schema.json"]


def test_reference_answers_may_be_in_another_attribute() -> None:
    queries = write("q.jsonl", json.dumps({"_id": "q1", "text": "what is red", "metadata": {"gold": "Apples."}}) + "\n")
    corpus = write("c.jsonl", json.dumps({"_id": "d1", "text": "The apple is red."}) + "\n")
    words = ("init", "--template", "judge", "--queries", queries, "--corpus", corpus)
    assert "no query has the attribute 'answer'" in rankbeam(*words).stderr
    assert rankbeam(*words, "--answers", "gold").exit_code == 0
    assert yaml.safe_load(Path("experiment.yaml").read_text())["dataset"]["answers"] == "gold"


def test_a_folder_with_the_names_of_beir_needs_no_option() -> None:
    for name in ("queries.jsonl", "qrels/test.tsv", "corpus.jsonl"):
        write(name, (EXAMPLES / "helpdesk" / name).read_text(encoding="utf-8"))
    write("rankbeam.schema.json", "{}")
    outcome = rankbeam("init")
    assert Path("rankbeam.schema.json").read_text() == "{}"
    assert outcome.stdout == "wrote experiment.yaml\nnext: rankbeam evaluate experiment.yaml\n"


def test_nothing_is_overwritten_and_nothing_remains_of_what_is_refused() -> None:
    write("helpdesk/gates.yaml", "mine")
    refused = rankbeam("init", "--example")
    assert (refused.exit_code, list(Path("helpdesk").iterdir())) == (2, [Path("helpdesk/gates.yaml")])
    assert "helpdesk/gates.yaml: exists already" in refused.stderr
    assert Path("helpdesk/gates.yaml").read_text() == "mine"
    qrels, run = write("qrels", "q1 0 d1 1\n"), write("a.run", "q2 Q0 d2 1 1.0 x\n")
    refused = rankbeam("init", "first.yaml", "--from", qrels, run)
    assert refused.exit_code == 2
    assert sorted(path.name for path in Path().iterdir()) == ["a.run", "helpdesk", "qrels"]


def test_an_interrupt_while_the_experiment_is_checked_leaves_nothing() -> None:
    with pytest.raises(KeyboardInterrupt), write_files({Path("experiment.yaml"): b"name: x"}):
        raise KeyboardInterrupt
    assert not Path("experiment.yaml").exists()


def test_examples_that_share_a_collection_are_written_one_after_the_other() -> None:
    assert rankbeam("init", "--example", "app").exit_code == 0
    assert rankbeam("init", "--example", "goldens").exit_code == 0
    assert Path("examples/app/app.py").exists()
    assert Path("examples/goldens/helpdesk.yaml").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "qrels"], "--from needs judgements and at least one run"),
        (["--from"], "--from"),
        (["--from", "none", "a.run"], "none: does not exist"),
        (["--example", "--template", "bm25"], "--example writes its own files"),
        (["--from", "qrels", "a.run", "--template", "bm25"], "only --queries can be used with it"),
        (["gs://bucket/first.yaml"], "is not on this machine"),
        (["--queries", "qrels"], "also needs --qrels FILE and --corpus FILE"),
    ],
)
def test_what_cannot_be_written_is_refused(words: list[str], message: str) -> None:
    write("qrels", "q1 0 d1 1\n")
    refused = rankbeam("init", *words)
    assert refused.exit_code == 2
    assert message in refused.stderr
    assert [path.name for path in Path().iterdir()] == ["qrels"]


def test_the_example_is_the_one_of_the_repository_and_valid() -> None:
    assert rankbeam("init", "--example", "demo").exit_code == 0
    source = EXAMPLES / "helpdesk"
    expected = [path.relative_to(source) for path in source.rglob("*") if path.is_file()]
    contents = {path.relative_to("demo"): path.read_bytes() for path in Path("demo").rglob("*") if path.is_file()}
    assert contents == {path: (source / path).read_bytes() for path in expected if path.parts[0] != "out"}
    assert "demo/answers.yaml: valid" in rankbeam("validate", "demo/answers.yaml").stdout


@pytest.mark.parametrize(
    ("name", "command"), [(name, example.commands[-1]) for name, example in EXAMPLES_BY_NAME.items()]
)
def test_every_example_is_valid_where_it_is_written(name: str, command: str) -> None:
    done = rankbeam("init", "here", f"--example={name}")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"next: {command.format('here')}"
    *_, verb, path = command.format("here").split()
    if path.endswith(".ipynb"):  # tests/endtoend/test_notebooks.py runs it
        assert json.loads(Path(path).read_text(encoding="utf-8"))["nbformat"] == 4
        return
    checked = rankbeam("goldens", "plan", path) if verb == "goldens" else rankbeam("validate", path)
    assert checked.exit_code == 0, checked.stderr


def test_a_name_may_follow_the_option_and_another_word_is_the_folder() -> None:
    for words, files in ((["--example", "app"], ["examples/app/app.py"]), (["--example", "own"], ["own/answers.yaml"])):
        done = rankbeam("init", *words)
        assert done.exit_code == 0, done.stderr
        assert all(Path(file).exists() for file in files)
    done = rankbeam("init", "--example", "runs", "there")
    assert done.exit_code == 0, done.stderr
    assert Path("there", "trec_runs").is_dir()


@pytest.mark.parametrize("words", [["--example=helpdsk"], ["--example", "helpdsk"], ["--example", "answrs"]])
def test_an_unknown_example_is_refused(words: list[str]) -> None:
    refused = rankbeam("init", *words)
    assert (refused.exit_code, list(Path().iterdir())) == (2, [])
    assert f"'{words[-1].removeprefix('--example=')}' is not one of 'helpdesk'" in refused.stderr


@pytest.mark.long
@pytest.mark.parametrize("provider", ["gemini", *in_campaigns("openai")])
def test_a_template_names_models_by_their_provider(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = f"{provider.upper()}_API_KEY"
    monkeypatch.setenv(variable, "k")
    done = rankbeam("init", "--template", provider)
    assert done.stdout.splitlines()[-1] == f"next: export {variable}=…, then rankbeam evaluate experiment.yaml"
    queries = Path("queries.jsonl")
    queries.write_text("".join(queries.read_text("utf-8").splitlines(keepends=True)[:4]), "utf-8")
    planned = rankbeam("plan", "experiment.yaml", "--format", "json")
    assert planned.exit_code == 0, planned.stderr
    assert all(pool["pool"].startswith(f"{provider}:") for pool in json.loads(planned.stdout)["models"])
    monkeypatch.delenv(variable)
    warned = rankbeam("validate", "experiment.yaml").stderr
    assert f"warning: experiment.yaml: api_key needs the environment variable {variable}" in warned


@pytest.mark.parametrize("arguments", [["file", "--example"], ["file/x.yaml", "--template", "bm25"]])
def test_a_file_in_place_of_a_folder_is_refused(arguments: list[str]) -> None:
    write("file", "")
    refused = rankbeam("init", *arguments)
    assert (refused.exit_code, "cannot be written: " in refused.stderr) == (2, True), refused.stderr
