# ruff: noqa: F811  fixtures are named as what they give
"""Tables to paste: names of any kind leave them whole, and the example is as it is printed."""

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.campaigns import examples
from support.cli import rankbeam
from support.data import REPOSITORY
from support.exported_tables import (  # noqa: F401  pytest finds it by name
    METRICS,
    check_latex,
    finished,
    latex_rows,
    markdown_tables,
    names,
    results,
    rewritten,
    text_of,
)

from rankbeam.pipelines import show
from rankbeam.pipelines.results.run import Results

EXAMPLE = str(REPOSITORY / "examples" / "helpdesk" / "experiment.yaml")


@pytest.mark.long
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(names, min_size=4, max_size=4))
def test_names_of_any_kind_are_shown_as_they_are(results: Results, hostile: list[str]) -> None:
    changed = rewritten(
        results,
        "configurations",
        [row | {"name": name} for row, name in zip(results.configurations, hostile, strict=False)],
    )
    changed = rewritten(
        changed, "runs", [row | {"experiment": hostile[3]} for row in results.table("runs").to_pylist()]
    )
    plain = [
        "".join(character if character.isprintable() else " " for character in row["name"])
        for row in changed.leaderboard()
    ]
    (table,) = markdown_tables(show.as_markdown(changed))
    assert [text_of(row[1]).strip() for row in table[1:]] == [name.strip() for name in plain]
    assert {len(row) for row in table} == {len(METRICS) + 3}
    document = show.as_latex(changed)
    check_latex(document)
    assert [read_latex(row[1]) for row in latex_rows(document)] == plain


WORDS = {"backslash": "\\", "asciitilde": "~", "asciicircum": "^", "less": "<", "greater": ">", "bar": "|"}


def read_latex(text: str) -> str:
    """The text that LaTeX prints for escaped text, which may have no command of any other kind."""
    escapes = r'\\text(\w+)\{\}|\{\\string(")\}|\\([&%$#_{}])|(-)\{\}(?=-)|([^&%$#_{}~^\\<>|"])'
    assert re.fullmatch(f"(?:{escapes})*", text)
    return "".join(WORDS.get("".join(letters), "".join(letters)) for letters in re.findall(escapes, text))


@pytest.mark.parametrize(
    ("name", "markdown", "latex"),
    [
        ("rag_512|k=5", r"rag\_512\|k=5", r"rag\_512\textbar{}k=5"),
        ("a\\b", r"a\\b", r"a\textbackslash{}b"),
        (
            "<b>*x*</b>\n`y`",
            r"&lt;b&gt;\*x\*&lt;/b&gt; \`y\`",
            r"\textless{}b\textgreater{}*x*\textless{}/b\textgreater{} `y`",
        ),
        (
            '50% & "$1" #2 {~^}',
            r'50% &amp; "\$1" #2 \{\~^\}',
            r'50\% \& {\string"}\$1{\string"} \#2 \{\textasciitilde{}\textasciicircum{}\}',
        ),
        ("--größe --- 検索", "--größe --- 検索", "-{}-größe -{}-{}- 検索"),
    ],
)
def test_how_names_are_escaped(results: Results, name: str, markdown: str, latex: str) -> None:
    changed = rewritten(results, "configurations", [row | {"name": name} for row in results.configurations])
    assert f"| a | {markdown} | " in show.as_markdown(changed)
    assert f"\na & {latex} & " in show.as_latex(changed)


@pytest.mark.long
def test_the_example_as_markdown_csv_and_latex(tmp_path: Path) -> None:
    outcome = rankbeam("evaluate", EXAMPLE, "--output", str(tmp_path), "--run-id", "r1", "--format", "markdown")
    assert outcome.status == 0, outcome.stderr
    results = Results(str(tmp_path), "r1")
    assert outcome.stdout == show.as_markdown(results)
    assert outcome.stdout.startswith("| # | configuration | nDCG@10 | R@10 | RR@10 | Success@3 | queries |\n")
    assert "DuckDB" in outcome.stderr
    leaderboard, difficulty, intent = markdown_tables(outcome.stdout)
    assert [text_of(row[1]) for row in leaderboard[1:]] == [row["name"] for row in results.leaderboard()]
    assert [text_of(cell) for cell in difficulty[0]] == [
        "#",
        "nDCG@10 by difficulty",
        "easy (21)",
        "hard (22)",
        "medium (21)",
    ]
    assert text_of(intent[0][2]) == "how_to (20)"
    best = results.means[results.leaderboard()[0]["config_id"], "difficulty=easy", "nDCG@10"]
    assert difficulty[1][2].findtext("strong") == f"{best.mean:.4f}"

    rows = list(csv.DictReader(io.StringIO("".join(show.as_csv(results)))))
    names = {row["config_id"]: row["name"] for row in results.configurations}
    expected = {
        (names[config_id], metric): row.mean
        for (config_id, name, metric), row in results.means.items()
        if name == "all"
    }
    assert {(row["configuration"], row["metric"]): float(row["value"]) for row in rows} == expected
    assert {row["query_id"] for row in rows} == {"all"}
    document = show.as_latex(results)
    check_latex(document)
    assert "\\label{tab:helpdesk}" in document
    assert "\\usepackage{booktabs}" in document.splitlines()[0]
    assert document.startswith("%")


def test_runs_are_scored_into_tables_too(finished: Results) -> None:
    folder = Path(finished.output).parent
    arguments = ["score", str(folder / "qrels.txt"), str(folder / "strong.run"), str(folder / "weak.run"), "-m", "RR"]
    outcome = rankbeam(*arguments, "--format", "latex")
    assert outcome.status == 0, outcome.stderr
    check_latex(outcome.stdout)
    assert outcome.stdout.endswith("\\end{table}\n")
    assert [row[1] for row in latex_rows(outcome.stdout)] == ["strong", "weak"]
    outcome = rankbeam(*arguments, "--format", "markdown", "--per-query")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert "--per-query" in outcome.stderr
