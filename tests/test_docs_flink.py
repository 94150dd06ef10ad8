"""docs/flink.md: the commands, options and limits that it names are there."""

import re
from pathlib import Path

import pytest
from support.cli import rankbeam

from rankbeam.pipelines.manage.derived import MOST_BYTES
from rankbeam.pipelines.portable import worker_pool
from rankbeam.pipelines.run import buckets
from rankbeam.pipelines.run.options import pipeline_options, refuse_unknown
from rankbeam.transforms.clients.formats.pieces import PIECE_BYTES

REPOSITORY = Path(__file__).parent.parent
GUIDE = (REPOSITORY / "docs" / "flink.md").read_text(encoding="utf-8")
OWN = ("--run-id", "--all-rows", "--no-wait")


def test_the_targets_of_make_are_there() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^    make (\S+)", GUIDE, flags=re.MULTILINE)
    assert len(targets) == 4
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_the_options_are_known() -> None:
    commands = re.findall(r"^    rankbeam evaluate \S+ (.*?)\n\n", GUIDE, flags=re.MULTILINE | re.DOTALL)
    assert len(commands) == 3
    for command in commands:
        arguments = [word for word in command.replace("\\\n", " ").split() if word not in OWN]
        pipeline_options(arguments)
        refuse_unknown(arguments)
    named = {*re.findall(r"`(--[a-z_]+)", GUIDE)} - {"--all", "--flink_version", "--no"}
    assert named >= {"--environment_type", "--job_endpoint", "--prism_location", "--flink_job_server_jar"}
    for name in named:
        refuse_unknown([f"{name}=1"])
    shown = rankbeam("evaluate", "--help").stdout
    assert all(name in shown for name in OWN)


def test_the_limits_are_those_of_the_code() -> None:
    assert PIECE_BYTES == MOST_BYTES == buckets._MOST_BYTES == 64 << 20  # "64 MB"


def test_the_pool_starts_by_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (module,) = set(re.findall(r"python -m (rankbeam\S+) --port", GUIDE))
    assert module == worker_pool.__name__
    monkeypatch.setattr("sys.argv", [module, "--help"])
    with pytest.raises(SystemExit) as ended:
        worker_pool.main()
    assert ended.value.code == 0
    assert "--port" in capsys.readouterr().out
