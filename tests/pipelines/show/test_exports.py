"""Tables to paste: what stands in them, and that names of any kind leave them whole."""

import csv
import io
import itertools
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from scipy import stats
from support.campaigns import examples
from support.cli import rankbeam
from support.data import REPOSITORY
from support.remote import answers, dataset, rag, run_file, write_experiment
from support.runs import query_values, run_experiment
from support.standins import Faults, serve

from rankbeam.pipelines import show
from rankbeam.pipelines.results.run import Results
from rankbeam.transforms.records import tables

EXAMPLE = str(REPOSITORY / "examples" / "helpdesk" / "experiment.yaml")
QUERIES = 40
METRICS = ["RR@10", "nDCG@10", "R@10"]
SPECIALS = "\\`*_{}[]()<>|~&$%#^\"'-+!.:=@ \n\t\x1b\u202e"
Row = dict[str, Any]

# The rank of the only relevant document: one system is far behind, two differ here and there and by chance.
RANKS: dict[str, Callable[[int], int]] = {
    "weak": lambda query: 4 + query % 3,
    "strong": lambda query: 2 if query % 8 == 0 else 1,
    "twin": lambda query: 2 if query % 8 == 4 or query == 5 else 1,
}


def evaluated(folder: Path, names: Sequence[str] = tuple(RANKS), depth: int = 7, **more: Any) -> Results:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "qrels.txt").write_text("".join(f"q{query} 0 right 1\n" for query in range(QUERIES)))
    for name in names:
        rows = []
        for query in range(QUERIES):
            found = ["right" if rank == RANKS[name](query) else f"wrong{rank}" for rank in range(1, depth + 1)]
            rows += [f"q{query} Q0 {doc} {rank} {1 / rank} t\n" for rank, doc in enumerate(found, 1)]
        (folder / f"{name}.run").write_text("".join(rows))
    configurations = [{"name": name, "retriever": {"type": "run_file", "path": f"{name}.run"}} for name in names]
    base = {"dataset": {"qrels": "qrels.txt"}, "configurations": configurations, "metrics": METRICS}
    return run_experiment(folder, base | more)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return evaluated(tmp_path_factory.mktemp("finished"), baseline="twin")


@pytest.fixture
def results(finished: Results, tmp_path: Path) -> Results:
    """A copy, to be rewritten."""
    shutil.copytree(finished.output, tmp_path / "copy")
    return Results(str(tmp_path / "copy"), finished.run_id)


def rewritten(results: Results, name: str, rows: Sequence[Row]) -> Results:
    """A run with other rows in one of its tables."""
    first, *others = sorted(Path(results.output, name, results.run_id).glob("*.parquet"))
    for path in others:
        path.unlink()
    pq.write_table(pa.Table.from_pylist(list(rows), tables.TABLES[name]), first)
    return Results(results.output, results.run_id)


def compared(results: Results, rows: Sequence[Row]) -> Results:
    """A run with comparisons of these values; configurations go by their names."""
    ids = {row["name"]: row["config_id"] for row in results.configurations}
    common = {name: results.run[name] for name in ("run_id", "experiment", "started_at")}
    nothing = dict.fromkeys(("queries", "unpaired", "wins", "ties", "losses"), 0)
    named = [row | {each: ids[row[each]] for each in ("config_id", "baseline")} for row in rows]
    return rewritten(results, "comparisons", [common | nothing | {"slice": "all"} | row for row in named])


def markdown_tables(document: str) -> list[list[list[ElementTree.Element]]]:
    """The cells of every table, as an independent reader of Markdown understands them."""
    html = MarkdownIt("commonmark").enable("table").enable("strikethrough").render(document)
    root = ElementTree.fromstring(f"<all>{html}</all>")  # noqa: S314  we made it
    return [[list(row) for row in table.iter("tr")] for table in root.iter("table")]


def text_of(cell: ElementTree.Element) -> str:
    return "".join(cell.itertext())


def superscripts(results: Results) -> dict[tuple[str, str], set[str]]:
    """Configuration and metric → names of the configurations that it is shown to be better than, from both formats."""
    head, *rows = markdown_tables(show.as_markdown(results))[0]
    names = {text_of(row[0]): text_of(row[1]) for row in rows}
    metrics = [text_of(cell) for cell in head[2:-1]]
    shown = {
        (text_of(row[1]), metric): {names[letter] for letter in (cell.findtext("sup") or "")}
        for row in rows
        for metric, cell in zip(metrics, row[2:-1], strict=True)
    }
    for letter, name, *cells in latex_rows(show.as_latex(results)):
        assert names[letter] == name
        for metric, cell in zip(metrics, cells, strict=True):
            raised = re.search(r"\$\^\{([a-z]*)\}\$", re.sub(r"\\hphantom\{.*\}", "", cell))
            assert {names[each] for each in (raised[1] if raised else "")} == shown[name, metric]
    return shown


def latex_rows(document: str) -> list[list[str]]:
    body = document.split("\\midrule\n")[1].split("\\bottomrule")[0]
    return [re.split(r" (?<!\\)& ", line.removesuffix(" \\\\")) for line in body.splitlines()]


def check_latex(document: str) -> None:
    """Braces and environments are balanced, and every row has as many cells as there are columns."""
    code = re.sub(r"(?<!\\)%.*", "", document)
    depth = list(itertools.accumulate(1 if each == "{" else -1 for each in re.findall(r"(?<!\\)[{}]", code)))
    assert min(depth) >= 0
    assert depth[-1] == 0
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", code):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    columns = re.search(r"\\begin\{tabular\}\{(\w+)\}", code)
    assert columns is not None
    assert {len(row) for row in latex_rows(document)} == {len(columns[1])}
    rules = ["\\toprule", "\\midrule", "\\bottomrule"]
    assert re.findall(r"\\\w+rule", code) == rules


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, as in Holm's paper: the smallest counts as often as there are tests, the next once less."""
    adjusted = dict.fromkeys(range(len(p_values)), 1.0)
    highest = 0.0
    for done, place in enumerate(sorted(adjusted, key=lambda each: p_values[each])):
        highest = max(highest, (len(p_values) - done) * p_values[place])
        adjusted[place] = min(1.0, highest)
    return list(adjusted.values())


def by_scipy(results: Results, pairs: Sequence[tuple[str, str]], *, t_test: bool) -> Iterator[Row]:
    """Comparisons of these pairs, by SciPy."""
    values = query_values(results)
    for metric in METRICS:
        rows = []
        for one, other in pairs:
            own, base = (np.array([query[metric] for query in values[name].values()]) for name in (one, other))
            difference = float((own - base).mean())
            if not (own - base).any():
                p_value = 1.0
            elif t_test:
                p_value = float(stats.ttest_rel(own, base).pvalue)
            else:
                test = stats.permutation_test(
                    (own, base),
                    lambda x, y: np.mean(x - y),
                    permutation_type="samples",
                    n_resamples=4999,
                    random_state=np.random.default_rng(5),
                )
                p_value = float(test.pvalue)
            rows.append({"config_id": one, "baseline": other, "metric": metric, "difference": difference, "p": p_value})
        for row, adjusted in zip(rows, holm([row["p"] for row in rows]), strict=True):
            assert not 0.02 < adjusted < 0.2  # whichever test is right, there is no doubt
            yield {name: value for name, value in row.items() if name != "p"} | {
                "p_value": row["p"],
                "p_adjusted": adjusted,
            }


def better(rows: Sequence[Row]) -> dict[tuple[str, str], set[str]]:
    """Configuration and metric → those that it is better than."""
    return {
        (name, metric): {
            row["baseline"] if row["config_id"] == name else row["config_id"]
            for row in rows
            if row["metric"] == metric and row["p_adjusted"] < 0.05 and name in (row["config_id"], row["baseline"])
            if (row["difference"] > 0) == (row["config_id"] == name)
        }
        for name in RANKS
        for metric in METRICS
    }


def test_superscripts_of_a_real_run_are_those_that_scipy_finds(finished: Results) -> None:
    expected = better(list(by_scipy(finished, [("weak", "twin"), ("strong", "twin")], t_test=True)))
    assert superscripts(finished) == expected
    assert expected["twin", "RR@10"] == {"weak"}
    assert expected["strong", "RR@10"] == set()  # not tested against the weak one
    assert "Only pairs with the baseline, b, were tested." in show.as_markdown(finished)
    assert "Only pairs with the baseline, b, were tested." in show.as_latex(finished)


def test_superscripts_of_all_pairs_in_either_direction(tmp_path: Path) -> None:
    run = evaluated(tmp_path, statistics={"pairs": "all"})
    rows = list(by_scipy(run, [("weak", "twin"), ("strong", "weak"), ("strong", "twin")], t_test=False))
    results = compared(run, rows)
    expected = better(rows)
    assert superscripts(results) == expected
    assert expected["strong", "nDCG@10"] == expected["twin", "nDCG@10"] == {"weak"}
    for document in (show.as_markdown(results), show.as_latex(results)):
        assert "All pairs were tested." in document
        assert "paired randomisation test with Holm correction" in document


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"difference": 0.1, "p_value": 0.001, "p_adjusted": 0.05}, ("strong", "weak")),
        ({"difference": 0.1, "p_value": 0.001, "p_adjusted": 0.0501}, None),
        ({"difference": -0.1, "p_value": 0.001, "p_adjusted": 0.01}, ("weak", "strong")),
        ({"difference": 0.0, "p_value": 0.001, "p_adjusted": 0.01}, None),
        ({"difference": 0.1, "p_value": 0.02, "p_adjusted": None}, ("strong", "weak")),
        ({"difference": 0.1, "p_value": None, "p_adjusted": None}, None),
        ({"difference": None, "p_value": None, "p_adjusted": None}, None),
        ({"difference": 0.1, "p_value": 0.001, "p_adjusted": 0.01, "slice": "kind=easy"}, None),
    ],
)
def test_what_counts_as_significant(results: Results, given: Row, shown: tuple[str, str] | None) -> None:
    changed = compared(results, [{"config_id": "strong", "baseline": "weak", "metric": "RR@10", **given}])
    found = {(name, other) for (name, _), others in superscripts(changed).items() for other in others}
    assert found == ({shown} if shown else set())
    said = show.as_markdown(changed) + show.as_latex(changed)
    anything = given["p_value"] is not None and "slice" not in given
    assert ("uperscripts" in said) is anything
    assert ("without correction" in said) is (anything and given["p_adjusted"] is None)


def test_the_level_is_that_of_the_confidence(tmp_path: Path) -> None:
    run = evaluated(tmp_path, ["strong", "weak"], statistics={"confidence": 0.99})
    row = {"config_id": "weak", "baseline": "strong", "metric": "RR@10", "difference": -0.5}
    assert superscripts(compared(run, [{**row, "p_adjusted": 0.02}]))["strong", "RR@10"] == set()
    results = compared(run, [{**row, "p_adjusted": 0.01}])
    assert superscripts(results)["strong", "RR@10"] == {"weak"}
    assert "p ≤ 0.01). All pairs were tested." in show.as_markdown(results)
    assert "99% confidence intervals" in show.as_markdown(results)
    assert "$p \\le 0.01$" in show.as_latex(results)


def test_more_configurations_than_letters(tmp_path: Path) -> None:
    run = evaluated(tmp_path, ["strong"], 28, grid={"top_k": list(range(1, 29))}, metrics=["RR@10", "NumRet"])
    names = [row["name"] for row in run.leaderboard()]
    common = {"config_id": names[0], "metric": "RR@10", "difference": 0.1, "p_adjusted": 0.001}
    results = compared(run, [common | {"baseline": names[place]} for place in (27, 5)])
    _, first, *others = markdown_tables(show.as_markdown(results))[0]
    assert [text_of(row[0]) for row in others][23:] == ["y", "z", "aa", "ab"]
    assert first[2].findtext("sup") == "f,ab"
    assert "$^{f,ab}$" in show.as_latex(results)
    check_latex(show.as_latex(results))


def test_numbers_are_the_means_and_the_best_are_bold(finished: Results) -> None:
    head, *rows = markdown_tables(show.as_markdown(finished))[0]
    assert [text_of(cell) for cell in head] == ["#", "configuration", *METRICS, "queries"]
    assert [text_of(row[1]) for row in rows] == ["strong", "twin", "weak"]
    latex = {name: cells for _, name, *cells in latex_rows(show.as_latex(finished))}
    ids = {row["name"]: row["config_id"] for row in finished.configurations}
    for row, (place, metric) in itertools.product(rows, enumerate(METRICS)):
        mean = finished.means[ids[text_of(row[1])], "all", metric]
        cell = row[2 + place]
        interval = f"{mean.mean:.4f}{cell.findtext('sup') or ''} [{mean.ci_low:.3f}, {mean.ci_high:.3f}]"
        assert text_of(cell) == interval
        best = text_of(row[1]) == "strong" or metric == "R@10"  # all find everything
        assert cell.findtext("strong") == (f"{mean.mean:.4f}" if best else None)
        bold = f"\\textbf{{{mean.mean:.4f}}}" if best else f"{mean.mean:.4f}"
        assert latex[text_of(row[1])][place].startswith(bold)
        assert text_of(row[-1]) == str(QUERIES)
    check_latex(show.as_latex(finished))
    source = f"40 judged queries, dataset fingerprint `{finished.run['dataset_fingerprint']}`, run `run`."
    assert source in show.as_markdown(finished)
    assert f"{', '.join(METRICS)}, averaged over 40 judged queries" in show.as_latex(finished)


def test_a_single_configuration_has_nothing_to_be_better_than(tmp_path: Path) -> None:
    results = evaluated(tmp_path, ["weak"])
    for document in (show.as_markdown(results), show.as_latex(results)):
        assert "tested" not in document
        assert "uperscripts" not in document
    assert superscripts(results) == {("weak", metric): set() for metric in METRICS}
    check_latex(show.as_latex(results))


def test_a_failed_configuration_is_failed_and_not_zero(tmp_path: Path) -> None:
    with serve("rag_engine", answers=answers(QUERIES), faults=Faults(kinds=("invalid",), only="question")) as server:
        two = [
            {"name": "broken", "retriever": rag(server), "top_k": 20},
            {"name": "file", "retriever": {"type": "run_file", "path": run_file(tmp_path, QUERIES)}},
        ]
        quotas = {"rag_engine": {"requests_per_minute": 60_000}}
        base = {"dataset": dataset(tmp_path, QUERIES), "configurations": two, "quotas": quotas}
        path = write_experiment(tmp_path, base)
        outcome = rankbeam("evaluate", path, "--run-id", "r1", "--format", "markdown")
    assert outcome.status == 3  # too many calls failed
    head, file, broken = ([text_of(cell) for cell in row] for row in markdown_tables(outcome.stdout)[0])
    assert (file[:2], broken[:2]) == (["a", "file"], ["b", "broken"])
    assert head[-2:] == ["queries", "failed"]
    assert (file[-2:], broken[-2:]) == ([str(QUERIES), "0"], ["0", str(QUERIES)])
    assert set(broken[2:-2]) == {"failed"}
    document = show.as_latex(Results(str(tmp_path / "out"), "r1"))
    assert set(latex_rows(document)[1][2:]) == {"--"}
    assert f"Left out of the means: failed queries (b: {QUERIES})." in document
    check_latex(document)


names = st.text(st.one_of(st.sampled_from(SPECIALS), st.characters(codec="utf-8")), min_size=1, max_size=12)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(names, min_size=4, max_size=4))
def test_names_of_any_kind_are_shown_as_they_are(results: Results, given: list[str]) -> None:
    changed = rewritten(
        results,
        "configurations",
        [row | {"name": name} for row, name in zip(results.configurations, given, strict=False)],
    )
    changed = rewritten(changed, "runs", [row | {"experiment": given[3]} for row in results.table("runs").to_pylist()])
    plain = ["".join(each if each.isprintable() else " " for each in row["name"]) for row in changed.leaderboard()]
    (table,) = markdown_tables(show.as_markdown(changed))
    assert [text_of(row[1]).strip() for row in table[1:]] == [name.strip() for name in plain]
    assert {len(row) for row in table} == {len(METRICS) + 3}
    document = show.as_latex(changed)
    check_latex(document)
    assert [read_latex(row[1]) for row in latex_rows(document)] == plain


WORDS = {"backslash": "\\", "asciitilde": "~", "asciicircum": "^", "less": "<", "greater": ">", "bar": "|"}


def read_latex(text: str) -> str:
    """What LaTeX prints for escaped text; nothing in it may be a command of any other kind."""
    escapes = r'\\text(\w+)\{\}|\{\\string(")\}|\\([&%$#_{}])|(-)\{\}(?=-)|([^&%$#_{}~^\\<>|"])'
    assert re.fullmatch(f"(?:{escapes})*", text)
    return "".join(WORDS.get("".join(found), "".join(found)) for found in re.findall(escapes, text))


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


def test_the_example_as_markdown(tmp_path: Path) -> None:
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


def test_the_example_as_csv_and_latex(tmp_path: Path) -> None:
    outcome = rankbeam("evaluate", EXAMPLE, "--output", str(tmp_path), "--run-id", "r1", "--format", "csv")
    results = Results(str(tmp_path), "r1")
    rows = list(csv.DictReader(io.StringIO(outcome.stdout)))
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
    given = ["score", str(folder / "qrels.txt"), str(folder / "strong.run"), str(folder / "weak.run"), "-m", "RR"]
    outcome = rankbeam(*given, "--format", "latex")
    assert outcome.status == 0, outcome.stderr
    check_latex(outcome.stdout)
    assert outcome.stdout.endswith("\\end{table}\n")
    assert [row[1] for row in latex_rows(outcome.stdout)] == ["strong", "weak"]
    outcome = rankbeam(*given, "--format", "markdown", "--per-query")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert "--per-query" in outcome.stderr
