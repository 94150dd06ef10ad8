"""The Makefile in a folder whose name has a space; nothing is installed here."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings
from support.data import REPOSITORY
from support.emulators import googlesql

PYTHON = ".venv/bin/python"
CREATE = ["python3.11", "-m", "venv", ".venv"]
PIP = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
INSTALL = [*PIP, "--editable"]
INSTALL_BEIR = [*PIP, "--no-deps", "beir>=2.2"]
INSTALL_DEV = [[*INSTALL, ".[dev]"], INSTALL_BEIR]
DEMO = [".venv/bin/rankbeam", "evaluate", "examples/helpdesk/answers.yaml", "--output", "out/helpdesk"]
TEST = [PYTHON, "-m", "pytest", "-n", "auto", "-m", "not (campaign or long)"]
LAWS_TOO = ["-m", "long or campaign or hypothesis", "--hypothesis-profile=campaign", "--hypothesis-seed=7"]
IN_ORDER = ["--dist=load", "--maxschedchunk=1"]
CAMPAIGN = [PYTHON, "-m", "pytest", "-n", "auto", *IN_ORDER, *LAWS_TOO, "tests"]
CHECK = [[".venv/bin/ruff", "check", "."], [".venv/bin/ruff", "format", "--check", "."], [".venv/bin/mypy"]]
CHECK += [[".venv/bin/lint-imports"], [PYTHON, "tests/support/english.py"]]
EMULATED = "tests/support/emulators/requirements.txt"
SHOWN = ("command", "echo", "touch", "make", "if")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder as it is after a checkout, but with emulators."""
    folder = tmp_path / "a folder"
    (folder / EMULATED).parent.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", EMULATED):
        shutil.copy(REPOSITORY / name, folder / name)
        os.utime(folder / name, (1000, 1000))
    (folder / ".venv-emulators").mkdir()
    (folder / ".venv-emulators" / ".installed").touch()
    os.utime(folder / ".venv-emulators" / ".installed", (2000, 2000))
    return folder


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make, without what a `make test` around these tests hands down."""
    handed_down = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHON"}
    environment = {name: value for name, value in os.environ.items() if name not in handed_down}
    return subprocess.run(["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def planned(folder: Path, *arguments: str) -> list[list[str]]:
    """The commands that make would run, in a shell's words, without those that only look or say something."""
    done = make(folder, "--dry-run", "--output-sync=recurse", "UV=", *arguments)  # makes that run at once print at once
    assert done.returncode == 0, done.stderr
    commands = [shlex.split(line) for line in done.stdout.replace("\\\n", " ").splitlines()]
    return [words for words in commands if words[0] not in SHOWN]


def put(folder: Path, name: str, seconds: int) -> None:
    """Put an empty file into the environment, as old as if it had been made that many seconds after 1970."""
    path = folder / ".venv" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (seconds, seconds))


def test_a_new_folder_gets_an_environment_by_relative_paths(folder: Path) -> None:
    assert planned(folder, "demo") == [CREATE, [*INSTALL, "."], DEMO]
    assert planned(folder, "test") == [CREATE, *INSTALL_DEV, TEST]
    assert planned(folder, "check") == [CREATE, *INSTALL_DEV, *CHECK]


def test_an_interrupted_environment_is_made_again(folder: Path) -> None:
    put(folder, "bin/pip", 2000)
    assert planned(folder, "demo")[0] == CREATE
    put(folder, "bin/activate", 2000)  # uv makes it, too, and no pip
    assert CREATE not in planned(folder, "demo")


def test_nothing_is_installed_twice(folder: Path) -> None:
    put(folder, "bin/activate", 2000)
    put(folder, ".installed-demo", 3000)
    assert planned(folder, "demo") == [DEMO]
    assert planned(folder, "test") == [*INSTALL_DEV, TEST]
    put(folder, ".installed-dev", 3000)
    assert planned(folder, "check", "test", "campaign", "CAMPAIGN_SEED=7") == [*CHECK, TEST, CAMPAIGN]
    put(folder, "bin/activate", 4000)
    assert planned(folder, "demo", "test") == [DEMO, TEST]


def test_the_tools_to_compare_with_have_an_environment_of_their_own(folder: Path) -> None:
    put(folder, "bin/activate", 2000)
    put(folder, ".installed-demo", 3000)
    peers = ".venv-peers/bin/python"
    measure = [f"PEERS_PYTHON={peers}", PYTHON, "tests/benchmarks/run.py", "--sizes", "S"]
    create = [*CREATE[:-1], ".venv-peers"]
    installed = [[peers, *INSTALL[1:], ".[benchmark]"], [peers, *INSTALL_BEIR[1:]]]
    assert planned(folder, "benchmark", "BENCHMARK=--sizes S") == [create, *installed, measure]


def test_new_dependencies_are_installed(folder: Path) -> None:
    put(folder, "bin/activate", 2000)
    put(folder, ".installed-demo", 3000)
    put(folder, ".installed-dev", 3000)
    os.utime(folder / "pyproject.toml", (4000, 4000))
    assert planned(folder, "demo") == [[*INSTALL, "."], DEMO]
    assert planned(folder, "test") == [*INSTALL_DEV, TEST]


def test_uv_installs_where_it_is_there_and_pip_where_uv_fails(folder: Path) -> None:
    put(folder, "bin/activate", 2000)
    lines = make(folder, "--dry-run", "UV=/opt/uv", "demo").stdout.splitlines()
    (install,) = (line for line in lines if "--editable" in line)
    uv, pip = install.split(" || ")
    assert shlex.split(uv)[:7] == ["/opt/uv", "pip", "install", "--quiet", "--python", PYTHON, "--editable"]
    assert shlex.split(pip) == [*INSTALL, "."]


def test_both_environments_of_the_tests_are_installed_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "the cache"))
    programs = folder / "bin"  # that would fetch what every machine needs once
    programs.mkdir()
    for name in ("go", "npm", "mvn"):
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    os.utime(folder / EMULATED, (3000, 3000))
    python = folder / "slow python"  # each installation waits until the other has begun
    python.write_text(
        '#!/bin/sh\ncase "$*" in\n'
        '"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && touch "$3.begun"\n'
        "    until [ -e .venv.begun ] && [ -e .venv-emulators.begun ]; do sleep 0.01; done ;;\nesac\n"
    )
    python.chmod(0o755)
    assert make(folder, "environments", "UV=", f"PYTHON={python}").returncode == 0
    assert (folder / ".venv" / ".installed-dev").exists()


def test_another_python_may_lie_in_a_folder_with_a_space(folder: Path) -> None:
    assert planned(folder, "demo", "PYTHON=/opt/my python/python3")[0] == ["/opt/my python/python3", *CREATE[1:]]


def test_ci_runs_campaigns_too_but_not_whole(folder: Path) -> None:
    put(folder, "bin/activate", 2000)
    put(folder, ".installed-demo", 3000)
    put(folder, ".installed-dev", 3000)
    (folder / ".ci").mkdir()
    shutil.copy(REPOSITORY / ".ci" / "run", folder / ".ci" / "run")
    program = folder / "bin" / "make"  # writes down what it is called with
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$CAMPAIGN_SHARE $CAMPAIGN_SEED $*"\n')
    (folder / "bin" / "chromium").write_text("#!/bin/sh\n")
    for file in program.parent.iterdir():
        file.chmod(0o755)
    temporary = folder / "temporary"
    temporary.mkdir()
    environment = {"PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(temporary)}
    done = subprocess.run([folder / ".ci" / "run"], env=environment, capture_output=True, text=True, check=True)
    environments, test, (share, seed, *goals) = (line.split() for line in done.stdout.splitlines())
    (checked,) = temporary.iterdir()
    check = checked.read_text().split()
    assert (0 < float(share) < 1, seed) == (True, "0")
    assert planned(folder, *environments, *check, *test, *goals, "CAMPAIGN_SEED=7") == [*CHECK, TEST, CAMPAIGN]


def test_ci_fails_with_what_linters_found_beside_the_tests(folder: Path) -> None:
    (folder / ".ci").mkdir()
    shutil.copy(REPOSITORY / ".ci" / "run", folder / ".ci" / "run")
    (folder / "bin").mkdir()
    for name, text in (("make", '#!/bin/sh\necho "made $*"\n[ "$1" != check ]\n'), ("chromium", "#!/bin/sh\n")):
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    environment = {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([folder / ".ci" / "run"], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()) == (1, ["made environments", "made test", "made check"])


def test_a_campaign_prints_the_seed_that_repeats_it(folder: Path) -> None:
    put(folder, "bin/activate", 2000)
    put(folder, ".installed-demo", 3000)
    put(folder, ".installed-dev", 3000)
    first, other = (make(folder, "--dry-run", "campaign").stdout for _ in range(2))
    seed = first.partition("CAMPAIGN_SEED=")[2].split()[0]
    assert f"--hypothesis-seed={seed} " in first
    again = make(folder, "--dry-run", "campaign", f"CAMPAIGN_SEED={seed}").stdout
    # Environments are installed at once, so that their commands are printed in any order.
    assert sorted(again.splitlines()) == sorted(first.splitlines()) != sorted(other.splitlines())


def test_examples_are_chosen_by_chance_in_campaigns_only() -> None:
    profiles = {name: settings.get_profile(name) for name in ("ordinary", "campaign")}
    assert {name: profile.derandomize for name, profile in profiles.items()} == {"ordinary": True, "campaign": False}
    assert profiles["campaign"].print_blob


def test_a_missing_python_is_named(folder: Path) -> None:
    done = make(folder, "demo", "PYTHON=python-that-is-not-there")
    assert done.returncode == 2
    assert done.stderr.startswith("python-that-is-not-there is not installed; name another")
    assert not (folder / ".venv").exists()


def test_an_environment_that_could_not_be_made_is_made_again(folder: Path) -> None:
    # As on Debian without python3-venv: the interpreter is there already when pip turns out to be missing.
    broken = folder / "broken python"
    broken.write_text('#!/bin/sh\nmkdir -p .venv/bin && ln -s "$0" .venv/bin/python\nexit 1\n')
    broken.chmod(0o755)
    assert make(folder, "demo", f"PYTHON={broken}").returncode == 2
    assert planned(folder, "demo")[0] == CREATE


def test_an_environment_without_pip_is_made_again(folder: Path) -> None:
    """SIGKILL during `python -m venv` leaves an interpreter alone."""
    put(folder, "bin/python", 2000)
    assert planned(folder, "demo") == [CREATE, [*INSTALL, "."], DEMO]


def test_make_alone_shows_the_commands(folder: Path) -> None:
    shown = [line.split()[:2] for line in make(folder).stdout.splitlines()]
    names = (
        "help",
        "demo",
        "test",
        "campaign",
        "check",
        "benchmark",
        "pace",
        "intervals",
        "simulate",
        "races",
        "mutants",
    )
    assert shown == [
        ["make", name]
        for name in (
            *names,
            "notebooks",
            "flink",
            "flink-test",
            "adk-test",
            "airflow-test",
            "docs",
            "deploy-files",
            "picture",
            "format",
            "clean",
        )
    ]


def test_emulators_are_installed_once_and_again_when_their_versions_change(folder: Path) -> None:
    assert EMULATED not in make(folder, "--dry-run", "test").stdout
    os.utime(folder / EMULATED, (3000, 3000))
    assert f"--requirement {EMULATED}" in make(folder, "--dry-run", "test").stdout
    assert EMULATED not in make(folder, "--dry-run", "demo").stdout


def test_the_emulator_in_go_is_built_once_for_a_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = folder / "tests/support/emulators/go"
    shutil.copytree(REPOSITORY / "tests/support/emulators/go", module)
    go = folder / "bin" / "go"
    go.parent.mkdir()
    go.write_text('#!/bin/sh\necho "$@" >>go.log\n[ -z "$BROKEN" ] && touch "$5"\n')
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "the cache"))
    monkeypatch.setenv("BROKEN", "yes")
    assert "the tests that need it will be skipped" in make(folder, "go-emulator").stderr
    assert not googlesql.program().exists()
    monkeypatch.delenv("BROKEN")
    assert (make(folder, "go-emulator").returncode, googlesql.program().exists()) == (0, True)
    googlesql.program().chmod(0o755)
    assert make(folder, "go-emulator").stdout == ""
    assert len((folder / "go.log").read_text().splitlines()) == 2
