# ruff: noqa: F811  fixtures are named as what they give
"""Tables to paste: their content, and names of any kind leave them whole."""

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support.cli import rankbeam
from support.exported_tables import (  # noqa: F401  pytest finds it by name
    METRICS,
    QUERIES,
    RANKS,
    Row,
    check_latex,
    evaluated,
    finished,
    latex_rows,
    markdown_tables,
    results,
    rewritten,
    text_of,
)
from support.remote import answers, dataset, rag, run_file, write_experiment
from support.runs import query_values
from support.standins import Faults, serve

from rankbeam.pipelines import show
from rankbeam.pipelines.results.run import Results


def compared(results: Results, rows: Sequence[Row]) -> Results:
    """A run with comparisons of these values; configurations go by their names."""
    ids = {row["name"]: row["config_id"] for row in results.configurations}
    common = {name: results.run[name] for name in ("run_id", "experiment", "started_at")}
    nothing = dict.fromkeys(("queries", "unpaired", "wins", "ties", "losses"), 0)
    named = [row | {column: ids[row[column]] for column in ("config_id", "baseline")} for row in rows]
    return rewritten(results, "comparisons", [common | nothing | {"slice": "all"} | row for row in named])


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
            assert {names[mark] for mark in (raised[1] if raised else "")} == shown[name, metric]
    return shown


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, as in Holm's paper: the smallest counts as often as there are tests, the next once less."""
    adjusted = dict.fromkeys(range(len(p_values)), 1.0)
    highest = 0.0
    for done, place in enumerate(sorted(adjusted, key=lambda pair: p_values[pair])):
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


@pytest.mark.long
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
    ("row", "shown"),
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
def test_what_counts_as_significant(results: Results, row: Row, shown: tuple[str, str] | None) -> None:
    changed = compared(results, [{"config_id": "strong", "baseline": "weak", "metric": "RR@10", **row}])
    pairs = {(name, other) for (name, _), others in superscripts(changed).items() for other in others}
    assert pairs == ({shown} if shown else set())
    text = show.as_markdown(changed) + show.as_latex(changed)
    anything = row["p_value"] is not None and "slice" not in row
    assert ("uperscripts" in text) is anything
    assert ("without correction" in text) is (anything and row["p_adjusted"] is None)


def test_the_level_is_that_of_the_confidence(tmp_path: Path) -> None:
    run = evaluated(tmp_path, ["strong", "weak"], statistics={"confidence": 0.99})
    row = {"config_id": "weak", "baseline": "strong", "metric": "RR@10", "difference": -0.5}
    assert superscripts(compared(run, [{**row, "p_adjusted": 0.02}]))["strong", "RR@10"] == set()
    results = compared(run, [{**row, "p_adjusted": 0.01}])
    assert superscripts(results)["strong", "RR@10"] == {"weak"}
    assert "p ≤ 0.01). All pairs were tested." in show.as_markdown(results)
    assert "99% confidence intervals" in show.as_markdown(results)
    assert "$p \\le 0.01$" in show.as_latex(results)


@pytest.mark.long
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


@pytest.mark.long
def test_a_failed_configuration_is_failed_and_not_zero(tmp_path: Path) -> None:
    few = 6
    with serve("rag_engine", answers=answers(few), faults=Faults(kinds=("invalid",), only="question")) as server:
        two = [
            {"name": "broken", "retriever": rag(server), "top_k": 20},
            {"name": "file", "retriever": {"type": "run_file", "path": run_file(tmp_path, few)}},
        ]
        quotas = {"rag_engine": {"requests_per_minute": 60_000}}
        base = {"dataset": dataset(tmp_path, few), "configurations": two, "quotas": quotas}
        path = write_experiment(tmp_path, base)
        outcome = rankbeam("evaluate", path, "--run-id", "r1", "--format", "markdown")
    assert outcome.status == 3  # too many calls failed
    head, file, broken = ([text_of(cell) for cell in row] for row in markdown_tables(outcome.stdout)[0])
    assert (file[:2], broken[:2]) == (["a", "file"], ["b", "broken"])
    assert head[-2:] == ["queries", "failed"]
    assert (file[-2:], broken[-2:]) == ([str(few), "0"], ["0", str(few)])
    assert set(broken[2:-2]) == {"failed"}
    document = show.as_latex(Results(str(tmp_path / "out"), "r1"))
    assert set(latex_rows(document)[1][2:]) == {"--"}
    assert f"Left out of the means: failed queries (b: {few})." in document
    check_latex(document)
