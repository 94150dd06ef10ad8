"""Options of a job on Dataflow: defaults, overrides, staged files, and immediate refusals."""

import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions
from support.data import REPOSITORY
from support.dataflow.execution import clean_python, run
from support.inputs import json_texts, trec_qrels, trec_run, write
from support.runs import rankbeam

from rankbeam.pipelines.dataflow import package
from rankbeam.pipelines.experiment.load import load_experiment
from rankbeam.pipelines.run import evaluate
from rankbeam.pipelines.run.options import is_portable, pipeline_options, works_elsewhere
from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.run import Run

NEEDED = ["--runner=DataflowRunner", "--project=p", "--region=r", "--temp_location=gs://bucket/temp"]
EXTERNAL = ["--runner=PortableRunner", "--job_endpoint=localhost:8099", "--environment_type=EXTERNAL"]
RUN = Run("20260102-030405-ab12", "FiQA, chunked", datetime(2026, 1, 2, tzinfo=UTC), "")


def completed(*more: str, lanes: int = 1) -> dict[str, object]:
    options = pipeline_options([*NEEDED, *more])
    package.set_defaults(options, RUN, lanes)
    return options.get_all_options()


def test_what_is_set_where_nothing_is_said() -> None:
    options = completed()
    expected = {
        "job_name": "rankbeam-fiqa-chunked-20260102-030405-ab12",
        "labels": ["rankbeam-run-id=20260102-030405-ab12", "rankbeam-experiment=fiqa-chunked"],
        "num_workers": 1,
        "max_num_workers": 4,
        "number_of_worker_harness_threads": 12,
        "experiments": ["no_use_multiple_sdk_containers"],
        "save_main_session": False,
        # Left alone: off, or Dataflow's own.
        "element_processing_timeout_minutes": None,
        "autoscaling_algorithm": None,
        "machine_type": None,
    }
    assert {name: options[name] for name in expected} == expected


def test_what_is_set_is_documented() -> None:
    documented = (REPOSITORY / "deploy" / "dataflow.md").read_text(encoding="utf-8")
    plain = pipeline_options(NEEDED).get_all_options()
    changed = {name for name, value in completed().items() if value != plain[name]}
    assert changed >= {"num_workers", "max_num_workers", "experiments", "labels"}
    for name in changed:
        assert f"| `--{name}" in documented or f"| `--no_{name}" in documented, name


def test_what_the_user_sets_stays() -> None:
    options = completed(
        "--job_name=mine",
        "--labels=team=search",
        "--num_workers=6",
        "--number_of_worker_harness_threads=3",
        "--experiments=use_multiple_sdk_containers,other",
        "--element_processing_timeout_minutes=5",
        "--worker_machine_type=n2-highmem-4",
    )
    assert (options["job_name"], options["num_workers"], options["max_num_workers"]) == ("mine", 6, 6)
    assert (options["number_of_worker_harness_threads"], options["machine_type"]) == (3, "n2-highmem-4")
    assert options["experiments"] == ["use_multiple_sdk_containers", "other"]
    assert options["element_processing_timeout_minutes"] == 5
    labels = options["labels"]
    assert isinstance(labels, list)
    assert labels[-1] == "team=search"
    assert completed("--max_num_workers=2")["max_num_workers"] == 2


def test_every_lane_has_a_thread() -> None:
    assert completed(lanes=8)["number_of_worker_harness_threads"] == 12
    assert completed(lanes=20)["number_of_worker_harness_threads"] == 24


@pytest.mark.parametrize("run_id", ["r", "R_1.x", "9", "x" * 128, "a-" + "9" * 100])
@pytest.mark.parametrize("name", ["fiqa", "FiQA / chunks", "日本", "n" * 90])
def test_names_and_labels_are_as_google_wants_them(run_id: str, name: str) -> None:
    run = Run(run_id, name, RUN.started_at, "")
    assert len(package.job_name(run)) <= 63
    job_name = package.job_name(run)
    assert job_name.replace("-", "a").isalnum()
    assert (job_name[0].isalpha(), job_name[-1] != "-", job_name.isascii(), job_name == job_name.lower()) == (True,) * 4
    for label in package.labels(run):
        key, _, value = label.partition("=")
        assert key.startswith("rankbeam-")
        assert len(value) <= 63
        assert value == value.lower()
        assert set(value) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--runner=DataflowRunner"], "needs --project, --region, --temp_location"),
        ([*NEEDED[:-1], "--temp_location=/tmp"], "--temp_location must be a folder on gs://; found '/tmp'"),
        ([*NEEDED, "--setup_file=/no/setup.py"], "/no/setup.py: no such file"),
        ([*NEEDED, "--extra_package=/no/own-1.tar.gz"], "/no/own-1.tar.gz: no such file"),
    ],
)
def test_options_that_cannot_be(options: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        package.set_defaults(pipeline_options(options), RUN, 1)
    assert message in str(caught.value)


def staged(tmp_path: Path, *more: str) -> list[str]:
    options = PipelineOptions(list(more))
    package.stage(options, str(tmp_path))
    return [Path(path).name for path in options.view_as(SetupOptions).extra_packages or []]


def test_rankbeam_is_staged_unless_it_comes_from_elsewhere(tmp_path: Path) -> None:
    wheel = "rankbeam-0.1.0-py3-none-any.whl"
    assert staged(tmp_path) == [wheel]
    assert staged(tmp_path, "--extra_package=/a/own-1.tar.gz") == ["own-1.tar.gz", wheel]
    assert staged(tmp_path, "--extra_package=/a/rankbeam-9.tar.gz") == ["rankbeam-9.tar.gz"]
    assert staged(tmp_path, "--setup_file=/a/setup.py") == []
    assert staged(tmp_path, "--sdk_container_image=gcr.io/p/image") == []


def test_the_wheel_is_the_code_that_runs(tmp_path: Path) -> None:
    with zipfile.ZipFile(package.write_wheel(str(tmp_path))) as archive:
        assert archive.testzip() is None
        wheel = {name: archive.read(name) for name in archive.namelist()}
    for name in ("pipelines", "transforms"):
        paths = [path for path in (REPOSITORY / name).rglob("*") if path.is_file() and path.suffix != ".pyc"]
        sources = {f"rankbeam/{path.relative_to(REPOSITORY).as_posix()}": path.read_bytes() for path in paths}
        assert {path: data for path, data in wheel.items() if path.startswith(f"rankbeam/{name}/")} == sources
    about = "rankbeam-0.1.0.dist-info"
    metadata = wheel[f"{about}/METADATA"].decode()
    assert "\nRequires-Dist: apache-beam[gcp]" in metadata
    assert b"rankbeam.transforms.clients.retrievers.lexical:Bm25" in wheel[f"{about}/entry_points.txt"]


@pytest.mark.campaign
def test_a_plain_install_stages_itself(tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    first.mkdir()
    again.mkdir()
    wheel = Path(package.write_wheel(str(first)))
    python = clean_python(tmp_path / "installed", [wheel])
    code = "import sys; from rankbeam.pipelines.dataflow.package import write_wheel; print(write_wheel(sys.argv[1]))"
    second = Path(run(python, "-I", "-c", code, str(again)).strip())
    assert (second.name, second.read_bytes()) == (wheel.name, wheel.read_bytes())


@pytest.fixture
def experiment(tmp_path: Path) -> str:
    """An experiment whose files are all on this machine; two have the same name."""
    write(tmp_path / "qrels" / "test", trec_qrels([("q1", "d", 1.0)]))
    write(tmp_path / "runs" / "test", trec_run([("q1", "d", 1.0)]))
    write(tmp_path / "corpus.jsonl", json_texts([("d", "text")]))
    write(tmp_path / "queries.jsonl", json_texts([("q1", "text")]))
    return write(
        tmp_path / "e.yaml",
        "name: My test\n"
        "dataset: {qrels: qrels/test, queries: queries.jsonl, corpus: corpus.jsonl}\n"
        "configurations:\n"
        "  - {name: old, retriever: {type: run_file, path: runs/test}}\n"
        "  - {name: bm25, retriever: {type: bm25}, top_k: 3}\n"
        "  - {name: asked, retriever: {type: http, url: 'http://localhost:9', results: r, id: i}, top_k: 3}\n"
        "metrics: [RR]\n"
        "output: {path: out, ledger: answers}\n",
    )


@pytest.mark.parametrize(
    "options",
    [
        NEEDED,
        ["--runner=apache_beam.runners.DataflowRunner", "--temp_location=gs://bucket/temp"],
        ["--runner=FlinkRunner", "--flink_master=flink.internal:8081", "--temp_location=gs://bucket/x"],
        ["--runner=PortableRunner", "--job_endpoint=jobs.internal:8099", "--temp_location=gs://bucket/x"],
        ["--runner=FlinkRunner", "--environment_type=DOCKER", "--temp_location=gs://bucket/x"],
        [*EXTERNAL, "--environment_config=workers.internal:50000", "--temp_location=gs://bucket/x"],
    ],
)
def test_files_of_this_machine_are_refused_all_at_once(experiment: str, tmp_path: Path, options: list[str]) -> None:
    outcome = rankbeam("evaluate", experiment, *options)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr.splitlines() == [
        "rankbeam: the workers of this job cannot reach files on this machine:",
        f"  dataset.qrels: {tmp_path}/qrels/test",
        f"  dataset.queries: {tmp_path}/queries.jsonl",
        f"  dataset.corpus: {tmp_path}/corpus.jsonl",
        f"  old, retriever.path: {tmp_path}/runs/test",
        f"  output: {tmp_path}/out",
        f"  ledger: {tmp_path}/answers",
        "upload the inputs:",
        f"  gcloud storage cp {tmp_path}/corpus.jsonl {tmp_path}/queries.jsonl gs://bucket/My-test/",
        f"  gcloud storage cp {tmp_path}/qrels/test gs://bucket/My-test/qrels/",
        f"  gcloud storage cp {tmp_path}/runs/test gs://bucket/My-test/runs/",
        "and name their new places in the experiment:",
        "  dataset.qrels: gs://bucket/My-test/qrels/test",
        "  dataset.queries: gs://bucket/My-test/queries.jsonl",
        "  dataset.corpus: gs://bucket/My-test/corpus.jsonl",
        "  old, retriever.path: gs://bucket/My-test/runs/test",
        "write results to a bucket: --output gs://bucket/My-test/out",
        "keep answers in a bucket: output.ledger: gs://bucket/My-test/ledger",
    ]  # fmt: skip
    assert not (tmp_path / "out").exists()


def test_evidence_on_this_machine_is_refused(tmp_path: Path) -> None:
    gold = write(tmp_path / "evidence.jsonl", '{"query_id": "q", "document_id": "d", "start": 0, "end": 3}\n')
    corpus = write(tmp_path / "corpus.jsonl", '{"_id": "d", "text": "text"}\n')
    queries = write(tmp_path / "queries.jsonl", '{"_id": "q", "text": "text"}\n')
    path = write(
        tmp_path / "e.yaml",
        "name: spans\n"
        f"dataset: {{evidence: {gold}, queries: {queries}, corpus: {corpus}, unit: span}}\n"
        "corpora: {cut: {type: chunks, by: words, chunk_size: 3}}\n"
        "configurations: [{name: a, retriever: {type: bm25, corpus: cut}, top_k: 3}]\n"
        "metrics: [RR]\n"
        "output: {path: gs://bucket/out}\n",
    )
    outcome = rankbeam("evaluate", path, *NEEDED)
    assert outcome.exit_code == 2
    assert f"  dataset.evidence: {gold}\n" in outcome.stderr


def test_scoring_on_dataflow_names_its_files_too(tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels", trec_qrels([("q1", "d", 1.0)]))
    run = write(tmp_path / "a.run", trec_run([("q1", "d", 1.0)]))
    outcome = rankbeam("score", qrels, run, *NEEDED)
    assert outcome.exit_code == 2
    assert f"  dataset.qrels: {qrels}\n  a, retriever.path: {run}\n" in outcome.stderr


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--runner=DirectRunner"],
        ["--runner=FlinkRunner"],
        ["--runner=FlinkRunner", "--flink_master=localhost:8081"],
        ["--runner=FlinkRunner", "--flink_master=flink.internal:8081", "--environment_type=LOOPBACK"],
        ["--runner=PortableRunner", "--job_endpoint=embed"],
        [*EXTERNAL, "--environment_config=localhost:50000"],
        ["--runner=PortableRunner", "--job_endpoint=127.0.0.1:8099"],
        ["--runner=SparkRunner", "--spark_master_url=local[2]"],
    ],
)
def test_workers_of_this_machine_may_read_its_files(options: list[str]) -> None:
    assert not works_elsewhere(pipeline_options(options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (NEEDED[:1], "a job on Dataflow needs --project, --region, --temp_location"),
        ([*NEEDED, "--num_wrokers=3"], "unknown option --num_wrokers; did you mean '--num_workers'?"),
        (
            [*NEEDED, "--template_location=gs://b/t"],
            "--template_location writes a template instead of submitting a job",
        ),
        ([*NEEDED, "--dry_run=yes"], "--dry_run is Beam's; --dry-run describes the job"),
    ],
)
@pytest.mark.usefixtures("memory")
def test_what_the_command_refuses(options: list[str], message: str, tmp_path: Path) -> None:
    text = "name: e\ndataset: {qrels: 'mem://b/qrels'}\nconfigurations:\n"
    text += "  - {name: a, retriever: {type: run_file, path: 'mem://b/a.run'}}\nmetrics: [RR]\n"
    outcome = rankbeam("evaluate", write(tmp_path / "e.yaml", text + "output: {path: 'mem://b/out'}\n"), *options)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert message in outcome.stderr


@pytest.fixture
def memory() -> None:
    """Judgements and a run on a filesystem that is not this machine's."""
    from support import memory_filesystem

    memory_filesystem.FILES["mem://b/qrels"] = trec_qrels([("q1", "d", 1.0)]).encode()
    memory_filesystem.FILES["mem://b/a.run"] = trec_run([("q1", "d", 1.0)]).encode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["."], "holds no submitted job"),
        (["2026-01-02_03_04_05-1"], "a job id needs --project and --region"),
    ],
)
def test_what_status_refuses(arguments: list[str], message: str) -> None:
    outcome = rankbeam("status", *arguments)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert message in outcome.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            [
                "--runner=PortableRunner",
                "--job_endpoint=localhost:9",
                "--environment_type=LOOPBACK",
                "--environment_config=x",
            ],
            "Option environment_config is not compatible with environment type LOOPBACK",
        ),
        (["--runner=Dataflw"], "Unexpected pipeline runner: Dataflw"),
    ],
)
def test_options_are_refused_before_an_earlier_run_is_deleted(
    experiment: str, tmp_path: Path, options: list[str], problem: str
) -> None:
    row = Path(write(tmp_path / "out" / "query_metrics" / "r1" / "part-00000-of-00001.parquet", "of the first run"))
    loaded, beam_options = load_experiment(experiment), pipeline_options(options)
    begin = evaluate.submit if is_portable(beam_options) else evaluate.run
    with pytest.raises(InputError, match=re.escape(problem)):
        begin(loaded, evaluate.new_run(loaded, "r1"), beam_options)
    assert row.exists()
