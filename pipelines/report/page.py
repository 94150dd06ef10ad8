"""Assemble the page: its parts as HTML, and the data from which its script draws the rest."""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files as package_files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from rankbeam.pipelines.report import compare, coverage, leaderboard, plots, words
from rankbeam.pipelines.report.card import card, duration
from rankbeam.pipelines.report.compare import ComparisonSection
from rankbeam.pipelines.report.curves import against_k, changes, precision_recall, trend
from rankbeam.pipelines.report.data import as_json, page_data
from rankbeam.pipelines.report.judge import judge
from rankbeam.pipelines.report.parameters import heat_maps, parameters, plot, sweeps
from rankbeam.pipelines.report.stages import service_usage, stages
from rankbeam.pipelines.report.study import Study
from rankbeam.pipelines.report.verdict import verdict
from rankbeam.pipelines.results.advice import HIGH, LOW, NOISY, advice
from rankbeam.pipelines.results.find import runs_alike
from rankbeam.pipelines.results.judge_differences import judge_changes
from rankbeam.pipelines.results.leaderboard import doubt, geometric_words, offline_words
from rankbeam.pipelines.results.run import Results
from rankbeam.pipelines.results.usage import seconds
from rankbeam.transforms.records.errors import pluralize
from rankbeam.transforms.records.scores.rows import FEW_QUERIES

_SCRIPTS = (
    "core",
    "address",
    "panels",
    "filters",
    "histogram",
    "answers",
    "conversations",
    "rankings",
    "marks",
    "pane",
    "queries",
    "downloads",
    "start",
)
_STYLES = ("base", "charts", "tables", "answers")
_DATASET = ("dataset.queries", "dataset.qrels", "dataset.corpus")
_MOST_RUNS = 30
MOST_ROWS_OF_A_NOTEBOOK = 50
_LONG_NAME = 25
_PART_ENDS = re.compile(r"(?<=[,:/])(?=[^\s\d,:/])|(?<=[^\s(])(?=[(@])")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def render(results: Results, against: ComparisonSection | None = None) -> str:
    study = Study(results)
    data = page_data(study)
    style, script = _style(), _script()
    swept = sweeps(study)
    swept_parameters = parameters(study)
    curves = [*against_k(study), *filter(None, [precision_recall(study)])]
    runs, _ = runs_alike(results, _MOST_RUNS)
    sections = [
        {
            "metric": metric,
            "offline": offline_words(metric),
            "geometric": geometric_words(results, metric),
            "board": leaderboard.board(study, metric),
            "comparisons": compare.comparisons(study, metric),
            "trend": trend(study, metric, runs),
            "changes": changes(study, metric),
            "judge_changes": judge_changes(runs, metric),
            "maps": heat_maps(study, metric, swept_parameters, is_swept=bool(swept)),
            "plots": [*filter(None, [plot(study, name, lines, metric) for name, lines in swept.items()])],
            "slices": coverage.slice_tables(study, metric),
            "stages": stages(study, metric),
        }
        for metric in study.metrics
    ]
    return _render(
        "report.html.j2",
        study=study,
        run=results.run,
        panels=sections,
        verdict=verdict(study),
        card=card(study),
        origin=origin(study),
        overview=_overview(study),
        swept=swept,
        against=against,
        advice=advice(results),
        limits={"low": LOW, "high": HIGH, "noisy": NOISY},
        few_queries=FEW_QUERIES,
        few_lines=plots.FEW_LINES,
        has_stages=any(panel["stages"] for panel in sections),
        stages_title=_stages_title(sections),
        has_trend=any(panel["trend"] or panel["changes"] for panel in sections),
        parameters=swept_parameters,
        has_maps=any(panel["maps"] for panel in sections),
        curves=curves,
        failures=coverage.failures(study),
        coverage=coverage.coverage(study),
        dataset=coverage.dataset_facts(study),
        method=coverage.method(study),
        judge=judge(study),
        used=service_usage(study),
        baseline=study.names[study.baseline],
        has_slices=len(results.slices) > 1,
        data=data,
        json=Markup(as_json(data)),  # noqa: S704  as_json leaves no letter that HTML could mistake
        style=Markup(style),  # noqa: S704  a file of ours
        script=Markup(script),  # noqa: S704  files of ours
        policy=_policy(style, script),
    )


def in_notebook(results: Results, warnings: list[str]) -> str:
    """A run as HTML without scripts, which looks right in light and dark themes, even without its style.

    The first metric is shown in pictures, the others in numbers.
    """
    study = Study(results)
    pairs, axis = compare.with_baseline(study, study.metrics[0])
    return _render(
        "notebook.html.j2",
        title=results.named,
        verdict=verdict(study),
        confidence=study.confidence,
        metrics=study.metrics,
        board=leaderboard.board(study, study.metrics[0]),
        cells=[[_cell(study, name, metric) for metric in study.metrics] for name in study.order(study.metrics[0])],
        pairs=pairs,
        axis=axis,
        baseline=study.names[study.baseline],
        most=MOST_ROWS_OF_A_NOTEBOOK,
        warnings=warnings,
    )


def _cell(study: Study, configuration: int, metric: str) -> str:
    """A mean with its interval, such as "0.6554 [0.585, 0.724]"."""
    row = study.mean(configuration, metric)
    if row.mean is None:
        return "–"
    if row.ci_low is None or row.ci_high is None:
        return f"{row.mean:.4f}"
    return f"{row.mean:.4f} [{row.ci_low:.3f}, {row.ci_high:.3f}]{doubt(row)}"


def _stages_title(sections: list[dict[str, Any]]) -> str:
    has_gains = any(panel["stages"] and panel["stages"]["gains"] for panel in sections)
    return "What each stage adds" if has_gains else "Cost and quality"


def _overview(study: Study) -> list[dict[str, Any]]:
    """Every configuration's means for all metrics."""
    best = {metric: study.mean(study.order(metric)[0], metric).mean for metric in study.metrics}
    rows = []
    for name in study.order(study.metrics[0]):
        means = [(metric, study.mean(name, metric)) for metric in study.metrics]
        cells = [
            {
                "mean": words.value(row.mean),
                "half_width": leaderboard.half_width(row),
                "is_cut_short": study.is_cut_short(row),
                "is_best": row.mean is not None and row.mean == best[metric],
                "may_be_best": bool(row.may_be_best),
            }
            for metric, row in means
        ]
        rows.append({"members": study.members[name], "name": study.titles[name], "cells": cells})
    return rows


def origin(study: Study) -> list[tuple[str, str]]:
    versions = study.results.run["versions"]
    costs = [row["cost"] for row in study.usage if row["cost"] is not None]
    facts = {
        "command": versions.get("command"),
        "commit": versions.get("commit"),
        "took": duration(study),
        "cost": f"{sum(costs):,.4g}" if costs else None,
        **{name: versions.get(name) for name in _DATASET},
    }
    return [(label, value) for label, value in facts.items() if value]


def _render(template: str, **values: Any) -> str:
    text: str = environment().get_template(template).render(**values)
    return text


@cache
def environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(lambda name: _file("templates", name)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    environment.filters["interval"] = _interval
    environment.filters |= {"count": pluralize, "series": words.series, "seconds": seconds, "parts": in_parts}
    environment.filters |= {"value": words.value, "signed": words.signed, "further": words.further}
    return environment


def _interval(row: Any, *, sign: bool = False) -> str:
    return words.interval(row.ci_low, row.ci_high, sign=sign)


def _printable(value: Any) -> Any:
    """The text without characters that HTML cannot contain, or that change the direction of the following text."""
    return _UNPRINTABLE.sub("\ufffd", value) if isinstance(value, str) and not isinstance(value, Markup) else value


def in_parts(name: str) -> Markup:
    """A name with line breaks where its parts end, and elsewhere only if necessary."""
    broken = Markup("<wbr>").join(_PART_ENDS.split(_printable(name)))
    return broken if len(name) < _LONG_NAME else Markup('<span class="long">{}</span>').format(broken)


@cache
def _style() -> str:
    return "\n".join(_file("static", f"{name}.css") for name in _STYLES)


@cache
def _script() -> str:
    parts = "\n".join(_file("static", f"{name}.js") for name in _SCRIPTS)
    return f'(function () {{\n"use strict";\n{parts}}})();\n'


def _file(*names: str) -> str:
    return package_files("rankbeam.pipelines.report").joinpath(*names).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """A policy that allows only the page's own script and style."""
    allowed = {"style-src": _hash(style), "script-src": _hash(script), "img-src": "data:"}
    sources = "; ".join(f"{name} {source}" for name, source in allowed.items())
    return f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
