"""The lint for plain English finds what it should, and leaves plain text alone."""

from pathlib import Path

import pytest
from support.english import files_of, findings

STUMBLES = {
    "argument": 'def f(documents):\n    """Sum.\n\n    Args:\n        documents: of which.\n    """\n',
    "clause": 'def f():\n    """Whether it is full."""\n',
    "identifier": "def f(asked):\n    return asked\n",
    "message": 'raise ValueError("rows of another schema than the table")\n',
    "wording": 'raise ValueError(f"{name} is no dataset")\n',
}
PLAIN = '''"""Documents: read and cut."""


def dense(documents: list[str], is_full: bool) -> str:
    """Return the longest document.

    Args:
        documents: texts to compare.
        is_full: True while the queue is full.
    """
    if not documents:
        raise ValueError("no documents given")
    raise ValueError(f"{documents[0]} is not a dataset")
'''


@pytest.mark.parametrize(("rule", "text"), STUMBLES.items())
def test_each_rule_finds_its_pattern(rule: str, text: str) -> None:
    assert [finding.rule for finding in findings("pipelines/example.py", text)] == [rule]


def test_a_module_with_a_private_word_for_a_name_is_found() -> None:
    assert [finding.text for finding in findings("pipelines/upkeep.py", "")] == ["upkeep"]


def test_a_cell_that_begins_with_of_is_found() -> None:
    (finding,) = findings("docs/page.md", "| key | meaning |\n|---|---|\n| `name` | Of the experiment. |\n")
    assert (finding.rule, finding.line) == ("cell", 3)


def test_plain_text_has_no_findings() -> None:
    assert list(findings("pipelines/example.py", PLAIN)) == []


def test_without_git_all_files_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "README.md").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert files_of(tmp_path) == ["README.md"]


def test_a_zip_of_the_source_has_the_files_of_a_clone_but_no_generated_ones(tmp_path: Path) -> None:
    files = ["README.md", ".github/SECURITY.md", "pipelines/run/build.py"]
    for name in (*files, ".venv-peers/lib/x.py", "out/x.md", "build/lib/x.py", "pipelines/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert sorted(files_of(tmp_path)) == sorted(files)
    assert files_of(tmp_path, ("pipelines",)) == files[-1:]
