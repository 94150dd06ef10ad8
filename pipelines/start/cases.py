"""An experiment for a file of questions and answers, which `init --from FILE` writes and `judge FILE` runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rankbeam.pipelines.config.references import hint_of, service_of_name
from rankbeam.transforms.clients.formats.cases.objects import rows_in
from rankbeam.transforms.clients.formats.cases.roles import Survey, survey_of
from rankbeam.transforms.clients.formats.cases.source import CaseSource
from rankbeam.transforms.clients.formats.cases.tools import checked_columns
from rankbeam.transforms.records.errors import InputError, did_you_mean, pluralize

JUDGE, EMBEDDER = "judge", "embedder"  # names of the services in these experiments


def columns_of(stated: Sequence[str]) -> dict[str, str]:
    """Columns from options such as `answer=reply`."""
    pairs = [entry.partition("=") for entry in stated]
    wrong = next((name for name, _, path in pairs if not path), None)
    if wrong is not None:
        raise InputError(f"--column {wrong!r}: write NAME=KEY, such as --column answer=reply")
    try:
        return checked_columns({name.strip(): path.strip() for name, _, path in pairs})
    except ValueError as error:
        raise InputError(f"--column {error}") from error


def survey_answers(file: str, columns: Mapping[str, str]) -> Survey:
    """Survey a file that must contain answers."""
    survey = survey_of(CaseSource(file, columns))
    if not survey.answers:
        known = ", ".join(path for path in survey.layout.paths("answer") if "?" not in path)  # no filters
        known = f"; it would have the key {known}" if known else ""
        keys = ", ".join(map(str, next(rows_in(file))[1]))
        raise InputError(
            f"has {pluralize(survey.rows, 'question')} and no answer{known}; the first row has: {keys}; name the key "
            "of the answers with --column answer=KEY, or use the file as the dataset of an experiment that answers: "
            "dataset: {file: …}",
            path=file,
        )
    return survey


def about(survey: Survey) -> str:
    """A survey as text.

    >>> from rankbeam.transforms.clients.formats.cases.read import Layout
    >>> from rankbeam.transforms.clients.formats.cases.objects import Shape
    >>> from rankbeam.transforms.clients.formats.cases.tools import COMMON
    >>> about(Survey(Layout(COMMON, Shape.CSV), 3, ("",), 2, 2, 0, 0, False, 0, {}, False))
    '3 rows (CSV, common names): 2 answers, 2 with contexts, 0 with a reference answer'
    """
    counts = f"{pluralize(survey.answers, 'answer')}, {survey.contexts:,} with contexts"
    counts += f", {survey.references:,} with a reference answer"
    judged = f", {survey.judged:,} with relevant documents" if survey.judged else ""
    return f"{pluralize(survey.rows, 'row')} ({survey.layout.shape}, {survey.layout.tool.name}): {counts}{judged}"


def metrics_for(survey: Survey) -> list[str]:
    ranked = ["nDCG@10", "R@10"] if survey.judged and survey.has_ids else []
    grounded = ["Faithfulness"] if survey.contexts else []
    referenced = ["ClaimRecall", *(["ContextRecall"] if survey.contexts else [])] if survey.references else []
    return [*ranked, *grounded, "AnswerRelevance", *referenced]


def configurations(name: str, survey: Survey) -> list[dict[str, Any]]:
    if survey.configs == ("",):
        return [{"name": name, "answers": {"type": "replay"}}]
    return [{"name": entry or name, "answers": {"type": "replay", "config": entry}} for entry in survey.configs]


def experiment_of(
    file: str,
    columns: Mapping[str, str],
    metrics: Sequence[str],
    services: Mapping[str, Mapping[str, Any]],
    rate: float | None,
    criteria: Mapping[str, Any] | None = None,
    prices: Mapping[str, float] | None = None,
    max_cost: float | None = None,
) -> dict[str, Any]:
    """The experiment that judges the answers in a file; without named metrics, criteria are metrics, too."""
    survey, name = survey_answers(file, columns), Path(file).name.lstrip(".").partition(".")[0]
    quotas: dict[str, dict[str, Any]] = {} if rate is None else {key: {"requests_per_minute": rate} for key in services}
    if prices is not None:
        quotas[JUDGE] = {**quotas.get(JUDGE, {}), "price_per_million": prices}
    embedder = {"embeddings": EMBEDDER} if EMBEDDER in services else {}
    named = {"criteria": dict(criteria)} if criteria else {}
    return {
        "name": name,
        "dataset": {"file": file, **({"columns": dict(columns)} if columns else {})},
        "services": {entry: dict(value) for entry, value in services.items()},
        **({"quotas": quotas} if quotas else {}),
        **({} if max_cost is None else {"max_cost": max_cost}),
        "configurations": configurations(name, survey),
        **({"judge": {"service": JUDGE, **embedder, **named}} if JUDGE in services else {}),
        "metrics": list(metrics) or list(criteria or ()) or metrics_for(survey),
    }


def service_of(text: str, types: Sequence[str]) -> dict[str, Any]:
    """A service from its type, from PROVIDER:MODEL, or from a YAML mapping.

    >>> service_of("lexical", ["lexical"]), service_of("{type: openai, model: m}", ["openai"])
    ({'type': 'lexical'}, {'type': 'openai', 'model': 'm'})
    """
    text = text.rstrip(": ")
    named = service_of_name(text)
    if named is not None:
        return named
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"--service {text!r} is not YAML; write '{{type: …, model: …}}'") from error
    if isinstance(value, str) and service_of_name(f"{value}:m") is not None:
        raise InputError(f"--service: {value} needs a model; write {value}:MODEL, with the name of the model")
    value = {"type": value} if isinstance(value, str) else value
    if not isinstance(value, dict) or value.get("type") not in types:
        kind = str(value.get("type") if isinstance(value, dict) else value)
        raise InputError(f"--service: {hint_of(kind) or f'unknown type {kind!r}; {did_you_mean(kind, types)}'}")
    return value


def prices_of(text: str | None) -> dict[str, Any] | None:
    """The prices in a YAML mapping.

    >>> prices_of("{input: 0.4, output: 1.6}")
    {'input': 0.4, 'output': 1.6}
    """
    try:
        value = None if text is None else yaml.safe_load(text)
    except yaml.YAMLError:
        value = text
    if text is not None and not isinstance(value, dict):
        raise InputError(f"--prices {text!r}: write '{{input: …, output: …}}', the prices per million tokens")
    return value


def text_of(path: Path, file: str, named: str, columns: Mapping[str, str]) -> str:
    """The experiment that `init --from FILE` writes to `path`, where the file of answers is called `named`."""
    survey = survey_answers(file, columns)
    value = {
        "name": path.stem,
        "dataset": {"file": named, **({"columns": dict(columns)} if columns else {})},
        "configurations": configurations(Path(file).name.lstrip(".").partition(".")[0], survey),
    }
    lines = [
        f"# {about(survey)}.",
        *(f"# {note}." for note in survey.notes()),
        yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip(),
        "services:",
        f"  {JUDGE}: {{type: lexical}}         # compares words, offline; a model: {{type: gemini, model: …}}",
        f"judge: {{service: {JUDGE}}}",
        f"metrics: [{', '.join(metrics_for(survey))}]",
        "output:",
        "  path: out                       # tables, results.duckdb and report.html",
    ]
    return "\n".join(lines) + "\n"
