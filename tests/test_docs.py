"""The documentation is true: every example of every page is run, and every link leads somewhere.

`support.documents` says what becomes of a block, by the words behind its fence.
"""

import contextlib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import hcl2
import pytest
import yaml
from support.data import REPOSITORY
from support.documents import PAGES, README, Block, Document, page
from support.example_application import served, stop_all
from support.key_reference import named_tables, sections, with_tables
from support.runs import rankbeam
from support.terraform import BLOCKS, MARKS

EXPERIMENT = page("experiment")
MAKEFILE = (REPOSITORY / "Makefile").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of the first command of most pages, which their other commands look at."""
    output = tmp_path_factory.mktemp("evaluated") / "helpdesk"
    command = ("evaluate", REPOSITORY / "examples" / "helpdesk" / "experiment.yaml", "--output", output)
    assert rankbeam(*command).exit_code == 0
    return output


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a reader who follows a page: a clone."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    stop_all()


def _run(command: str) -> str:
    """The output of a command. Make and pip are not run: their target has to exist, their package to be this one."""
    words = shlex.split(command, comments=True)
    match words:
        case ["rankbeam", *arguments]:
            result = rankbeam(*arguments)
            assert result.exit_code in (0, 3), result.stderr  # 3: a gate is missed
            return result.stdout
        case ["python", *arguments, "&"]:
            return served(arguments[0])
        case ["python", *arguments]:
            return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True).stdout
        case ["make", target]:
            assert re.search(rf"^{target}:", MAKEFILE, flags=re.MULTILINE), target
            return ""
        case ["pip", "install", package]:
            assert package.partition("[")[0] == "rankbeam"
            return ""
    raise AssertionError(f"nothing is known of {command!r}")


def _console(block: Block) -> None:
    for line, shown in block.commands():
        printed = "".join(_run(command) for command in line.split(" && ")).splitlines()
        assert [shown_line.rstrip() for shown_line in shown] == [
            shown_line.rstrip() for shown_line in printed[: len(shown)]
        ]


def _python(block: Block) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(block.text, "example", "exec"), {"__name__": "example"})  # noqa: S102  it is the repository's own


def _sql(block: Block) -> None:
    with duckdb.connect("out/helpdesk/results.duckdb", read_only=True) as connection:
        assert connection.execute(block.text).fetchall()


def _json(block: Block) -> None:
    for line in block.text.splitlines():
        assert isinstance(json.loads(line), dict)


def _hcl(block: Block) -> None:
    variables = {name for kind, name, _ in BLOCKS if kind == "variable"}
    assert hcl2.loads(block.text).keys() - MARKS <= variables


CHECKS: dict[str, Callable[[Block], object]] = {
    "console": _console,
    "python": _python,
    "sql": _sql,
    "json": _json,
    "yaml": lambda block: yaml.safe_load(block.text),
    "toml": lambda block: tomllib.loads(block.text),
    "hcl": _hcl,
    "sh": lambda _block: None,  # tests/packaging/test_deploy_readme.py checks the commands' options
    "text": lambda _block: None,
}


def expects_a_run(page: Document) -> bool:
    """Return whether its examples read a run that they do not make."""
    texts = [block.text for block in page.blocks if block.language in ("console", "python", "sql")]
    looks = any("out/helpdesk" in text for text in texts) or any(block.language == "sql" for block in page.blocks)
    return looks and not any("experiment.yaml --output out/helpdesk\n" in text for text in texts)


@pytest.mark.parametrize("page", [page for page in PAGES if page.blocks], ids=lambda page: page.name)
def test_the_examples_of_a_page_work_one_after_the_other(
    page: Document, clone: Path, request: pytest.FixtureRequest
) -> None:
    if expects_a_run(page):
        shutil.copytree(request.getfixturevalue("evaluated"), clone / "out" / "helpdesk")
    for block in page.blocks:
        if block.file:
            (clone / block.file).write_text(block.text, encoding="utf-8")
        else:
            print(f"{page.name}:{block.line}")  # noqa: T201  pytest shows it where the example fails
            CHECKS[block.language](block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page: Document) -> None:
    assert page.broken_links == []
    for target in re.findall(r"`make ([a-z-]+)", page.text):
        assert re.search(rf"^{target}:", MAKEFILE, flags=re.MULTILINE), target


def test_every_page_is_reached_from_the_first_one() -> None:
    index = next(page for page in PAGES if page.path.stem == "index")
    others = {page.path.name for page in PAGES if page is not README and page is not index}
    assert {link.partition("#")[0] for link in index.links} >= others


def test_the_site_has_every_page_in_its_navigation() -> None:
    """As `make docs` demands, which needs ProperDocs."""
    site = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    named = [
        name for section in site["nav"] for pages in section.values() for entry in pages for name in entry.values()
    ]
    assert sorted(named) == sorted(page.path.name for page in PAGES if page is not README)


def test_the_readme_is_short() -> None:
    assert len(README.text.splitlines()) <= 150
    for picture in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README.text):
        assert (REPOSITORY / picture).stat().st_size < 100_000


def test_the_reference_of_keys_is_that_of_the_models() -> None:
    """`python tests/support/key_reference.py` rewrites its tables."""
    assert with_tables(EXPERIMENT.text) == EXPERIMENT.text
    assert sorted(named_tables(EXPERIMENT.text)) == sorted(name for name, _ in sections())


@pytest.mark.parametrize("block", EXPERIMENT.blocks, ids=lambda block: str(block.line))
def test_the_examples_of_the_reference_are_valid_experiments(block: Block, clone: Path) -> None:
    """Each replaces keys of the first one, which is complete."""
    experiment = yaml.safe_load(EXPERIMENT.blocks[0].text) | yaml.safe_load(block.text)
    path = clone / "examples" / "helpdesk" / "example.yaml"
    path.write_text(yaml.safe_dump(experiment), encoding="utf-8")
    result = rankbeam("validate", path)
    assert result.exit_code == 0, result.stderr
