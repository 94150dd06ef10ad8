"""The guide to plug-ins: a package that is built from its page, and nothing else, runs as an installed one."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.campaigns import in_campaigns
from support.data import REPOSITORY
from support.documents import page
from support.plug_ins import install, run

EXTEND = page("extend")
Own = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the guide's experiments and their files, and below `site` a package with the guide's types."""
    site = tmp_path / "site"
    site.mkdir()
    for block in EXTEND.blocks:
        if block.file:
            (site / block.file).write_text(block.text, encoding="utf-8")
            if block.language == "yaml":
                shutil.copy(site / block.file, tmp_path)
    install(site, tomllib.loads((site / "pyproject.toml").read_text())["project"]["entry-points"])
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "boat"}\n{"_id": "q2", "text": "bear"}\n')
    (tmp_path / "qrels.txt").write_text("q1 0 boat 1\nq2 0 bboat 0\nq2 0 bbear 1\n")
    (tmp_path / "corpus.jsonl").write_text(
        '{"_id": "boat", "text": "a boat on the sea and\\n  another boat, which has sails of linen and masts of oak"}\n'
        '{"_id": "bbear", "text": "a bear"}\n'
    )
    return tmp_path


def means(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"^(\S+) +(\d\.\d{4})", done.stdout, flags=re.MULTILINE))


def test_the_retrievers_of_the_guide_run_from_an_installed_package(installed: Path) -> None:
    # `prefix` finds "bbear" for q2 alone; `shelf` finds "boat" first for both queries.
    assert means(run(installed, "evaluate", "own.yaml")) == {
        "prefix:prefix=a": "0.0000",
        "prefix:prefix=b": "0.5000",
        "shelf": "0.5000",
    }


def test_the_model_and_the_judged_metric_of_the_guide_answer_and_judge(installed: Path) -> None:
    done = run(installed, "evaluate", "echo.yaml")
    assert done.returncode == 0, done.stderr
    answers = pq.read_table(installed / "out-echo" / "answers").to_pylist()
    assert [(row["status"], len(row["answer"].split()), row["model_version"]) for row in answers] == [
        ("ok", 3, "echo-001")
    ] * 2
    # None of the answers ends with a full stop, so that the offline judge gives each of them a 1 of 3.
    assert "Coherence(judge=lexical)" in done.stdout
    assert "0.3333" in done.stdout
    verdicts = pq.read_table(installed / "out-echo" / "verdicts").to_pylist()
    grades = {row["grade"] for row in verdicts if row["step"] == "coherence" and not row["is_sentinel"]}
    assert grades == {1}
    quality = pq.read_table(installed / "out-echo" / "judge_quality").to_pylist()
    assert "coherence" in {row["step"] for row in quality}
    (installed / "gates.yaml").write_text("gates: [{metric: Coherence, at_least: 0.9}]\n")
    gate = run(installed, "gate", "out-echo", "--experiment", "gates.yaml")
    assert (gate.returncode, "Coherence" in gate.stdout) == (3, True), gate.stderr
    planned = run(installed, "plan", "echo.yaml", "--output", "another")
    assert (planned.returncode, "coherence" in planned.stdout) == (0, True), planned.stderr
    assert run(installed, "report", "out-echo", "--output", "report.html").returncode == 0
    assert "Coherence(judge=lexical)" in (installed / "report.html").read_text()


def test_the_chunker_and_the_metrics_of_the_guide_cut_and_score(installed: Path) -> None:
    done = run(installed, "evaluate", "lines.yaml")
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(installed / "out-lines" / "configuration_metrics").to_pylist()
    assert {(row["metric"], row["mean"]) for row in rows} == {("AllFound@5", 1.0), ("Gain@5", 1.0), ("RR", 1.0)}
    sizes = [row["mean"] for row in rows if row["metric"] == "RR"]
    assert len(sizes) == 2
    assert "AllFound@5 defines no bounds under ties: where judged documents are tied, they are 0 and 1" in done.stderr


def test_what_the_guide_says_is_missing_is_refused_before_anything_runs(installed: Path) -> None:
    text = (installed / "echo.yaml").read_text()
    (installed / "no-corpus.yaml").write_text(text.replace(", corpus: corpus.jsonl", ""))
    refused = run(installed, "validate", "no-corpus.yaml")
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    assert "corpus" in refused.stderr


WRONG = {
    "model without connect": (
        {"rankbeam.models": {"mute": "mute:Mute"}},
        "from rankbeam import ModelParameters\nclass Mute(ModelParameters): ...\n",
        "services: {m: {type: mute, model: m}}",
        "rankbeam.models 'mute' of the package own: mute:Mute does not define connect()",
    ),
    "retriever without open": (
        {"rankbeam.retrievers": {"mute": "mute:Mute"}},
        "from rankbeam import RetrieverParameters\nclass Mute(RetrieverParameters): ...\n",
        "",
        "rankbeam.retrievers 'mute' of the package own: mute:Mute does not define open()",
    ),
    "metric of a name that exists": (
        {"rankbeam.metrics": {"Recall": "mute:recall"}},
        "def recall(a): ...\n",
        "",
        "rankbeam.metrics 'Recall' of the package own: Recall is a metric already; choose another name",
    ),
    "metric of the name of a judged one": (
        {"rankbeam.metrics": {"Faithfulness": "mute:recall"}},
        "def recall(a): ...\n",
        "",
        "Faithfulness is a judged metric; choose another name",
    ),
    "metric of a name that cannot be written": (
        {"rankbeam.metrics": {"all found": "mute:recall"}},
        "def recall(a): ...\n",
        "",
        "rankbeam.metrics 'all found' of the package own: the name of a metric has letters, digits and underscores",
    ),
    "metric that is something else": (
        {"rankbeam.metrics": {"Own": "mute:OWN"}},
        "OWN = 3\n",
        "metrics: [Own]",
        "rankbeam.metrics 'Own' of the package own: mute:OWN is neither a function nor a MetricDefinition",
    ),
    "option without a default": (
        {"rankbeam.metrics": {"Own": "mute:own"}},
        "def own(a, depth): ...\n",
        "metrics: [Own]",
        "the option 'depth' needs a default that is a bool, a number or a str",
    ),
    "option that is no whole number": (
        {"rankbeam.metrics": {"Own": "mute:own"}},
        "def own(a, depth=3): ...\n",
        "metrics: [Own(depth=1.5)]",
        "metric 'Own(depth=1.5)': depth=1.5 is not a whole number",
    ),
    "module that is not there": (
        {"rankbeam.metrics": {"Own": "gone:own"}},
        "",
        "metrics: [Own]",
        "'Own' of the package own cannot be imported: No module named 'gone'; if the package was updated",
    ),
    "ties without any bound": (
        {"rankbeam.metrics": {"Own": "mute:OWN"}},
        "from rankbeam import MetricDefinition\nOWN = MetricDefinition(lambda a: a.retrieved, highest=None)\n",
        "metrics: [Own]\nties: true",
        "Own has neither bounds under ties nor a highest value; define one of them, or remove `ties: true`",
    ),
}


def own_experiment(folder: Path, groups: dict[str, dict[str, str]], code: str, lines: str) -> None:
    site = folder / "site"
    install(site, groups)
    (site / "mute.py").write_text(code)
    text = "name: own\ndataset: {qrels: qrels.txt}\n"
    retriever = "{type: mute}" if "rankbeam.retrievers" in groups else "{type: run_file, path: run}"
    text += f"configurations: [{{name: c, retriever: {retriever}}}]\n"
    text += lines if "metrics:" in lines else f"metrics: [RR]\n{lines}"
    (folder / "e.yaml").write_text(f"{text}\noutput: {{path: out}}\n")
    (folder / "qrels.txt").write_text("q1 0 a 1\nq2 0 b 2\n")
    (folder / "run").write_text("q1 Q0 a 1 0.5 x\nq1 Q0 b 2 0.5 x\nq2 Q0 a 1 0.5 x\n")


@pytest.mark.parametrize("case", [*list(WRONG)[:4], *in_campaigns(*list(WRONG)[4:])])
def test_wrong_plug_ins_are_refused_by_name(tmp_path: Path, case: str) -> None:
    groups, code, lines, problem = WRONG[case]
    own_experiment(tmp_path, groups, code, lines)
    refused = run(tmp_path, "validate", "e.yaml")
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False), refused.stderr
    assert problem in refused.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("formula", "problem"),
    [
        ("a.retrieved[:0]", "'Own' of the package own returned int64 of shape (0,); a number per query would be ("),
        *in_campaigns(
            ("0 * a.retrieved + 1.5", "'Own' of the package own has a value of 1.5, which is not from 0 to 1"),
            ("a.retrieved * float('nan')", "'Own' of the package own has a value of nan, which is not from 0 to 1"),
        ),
    ],
)
def test_values_that_cannot_be_are_refused(tmp_path: Path, formula: str, problem: str) -> None:
    own_experiment(
        tmp_path, {"rankbeam.metrics": {"Own": "mute:own"}}, f"def own(a): return {formula}\n", "metrics: [Own]"
    )
    refused = run(tmp_path, "evaluate", "e.yaml")
    assert refused.returncode == 2, refused.stderr
    assert problem in refused.stderr


def test_options_of_own_metrics_have_no_ranges_of_other_metrics(tmp_path: Path) -> None:
    text = "def own(a, *, T=1.0, min_rel=2.0, gain='', gains=''): return 0.0 * a.retrieved\n"
    metrics = "metrics: ['Own(T=0.1,gain=a,gains=b)']"
    own_experiment(tmp_path, {"rankbeam.metrics": {"Own": "mute:own"}}, text, metrics)
    accepted = run(tmp_path, "validate", "e.yaml")
    assert accepted.returncode == 0, accepted.stderr


def test_two_packages_with_one_name_are_refused(tmp_path: Path) -> None:
    own_experiment(tmp_path, {"rankbeam.metrics": {"Own": "mute:own"}}, "def own(a): ...\n", "metrics: [Own]")
    install(tmp_path / "site", {"rankbeam.metrics": {"Own": "other:own"}}, "other")
    refused = run(tmp_path, "validate", "e.yaml")
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False), refused.stderr
    problem = "mute:own of the package own and other:own of the package other are installed under one name; uninstall"
    assert problem in " ".join(refused.stderr.split())


def test_pip_packs_every_module_of_the_guide() -> None:
    (project,) = (tomllib.loads(block.text) for block in EXTEND.blocks if block.file == "pyproject.toml")
    files = {block.file for block in EXTEND.blocks if block.language == "python" and block.file}
    assert {f"{name}.py" for name in project["tool"]["setuptools"]["py-modules"]} == files


def test_the_page_names_every_group_of_entry_points() -> None:
    groups = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["entry-points"]
    text = EXTEND.path.read_text()
    assert [group for group in (*groups, "rankbeam.metrics", "rankbeam.judged") if group not in text] == []
