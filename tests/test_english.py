"""The lint for plain English finds what it should, and leaves plain text alone."""

import pytest
from support.english import findings

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
