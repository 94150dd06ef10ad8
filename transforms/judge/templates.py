"""The judge's prompts and their examples: package data, one file for each step and version, or a user's folders."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rankbeam.transforms.clients.formats.syntax import json_lines
from rankbeam.transforms.judge.steps import step_named, steps
from rankbeam.transforms.judge.steps.criterion import CriterionStep
from rankbeam.transforms.records.calls.prompt import FENCE, SEPARATOR, Template, check_template, newest
from rankbeam.transforms.records.errors import CallError, InputError, did_you_mean

VERSION_1 = "v1"  # the version whose keys are those of the first release; it sends long questions whole
DEFAULT_VERSION = "v2"
VERSIONS: Mapping[str, int] = MappingProxyType({VERSION_1: 1, DEFAULT_VERSION: 2})
"""The versions of the shipped prompts, by name."""

_REPLY = "reply"
_STEPS = files("rankbeam.transforms.judge.steps")


@cache
def built_in_templates(version: int = VERSIONS[DEFAULT_VERSION]) -> Mapping[str, Template]:
    """The built-in template of each step; from version 2 on with its examples, if there are any."""
    known = newest("rankbeam.transforms.judge.steps", _schema, version)
    return known if version == 1 else {**known, **_with_examples(known, str(_STEPS / "examples"))}


def templates(prompts: str = DEFAULT_VERSION, examples: str | None = None) -> Mapping[str, Template]:
    """The template of each step; `prompts` is a version or a user's folder, `examples` a folder of correct replies."""
    version = VERSIONS.get(prompts, VERSIONS[DEFAULT_VERSION])
    known = {**built_in_templates(version), **_plug_in_templates()}
    if prompts not in VERSIONS:
        known |= _own_templates(prompts, known)
    if examples is None:
        return MappingProxyType(known)
    plain = newest("rankbeam.transforms.judge.steps", _schema, version)
    replaced = {step: template for step, template in plain.items() if known[step].name == template.name}
    own = _with_examples({**known, **replaced}, examples)
    if not own:
        raise InputError("holds no examples; name the files after steps, such as support.jsonl", path=examples)
    return MappingProxyType({**known, **own})


def _own_templates(folder: str, known: Mapping[str, Template]) -> Mapping[str, Template]:
    own: dict[str, Template] = {}
    for path in sorted(Path(folder).glob("*.txt")):
        step = path.name.partition(".")[0]
        if step not in known:
            raise InputError(f"no step of the judge is called {step!r}; {did_you_mean(step, known)}", path=str(path))
        if step in own:
            raise InputError(f"a second template of {step}, in addition to {own[step].name}; keep one", path=str(path))
        own[step] = _checked_template(Template(step, path.read_text(encoding="utf-8"), path.name, _schema), str(path))
    if not own:
        problem = "holds no template; name them after steps, such as support.txt, or write a version"
        raise InputError(f"{problem}: {', '.join(VERSIONS)}", path=folder)
    return own


def _with_examples(known: Mapping[str, Template], folder: str) -> Mapping[str, Template]:
    """The templates of all steps with examples in the folder; the examples follow the instructions."""
    steps_known = known.keys() - {CriterionStep.name}
    shown = {}
    for path in sorted(Path(folder).glob("*.jsonl")):
        if path.stem == CriterionStep.name:
            raise InputError("a criterion names its examples itself: judge.criteria.NAME.examples", path=str(path))
        if path.stem not in steps_known:
            hint = did_you_mean(path.stem, steps_known)
            raise InputError(f"no step of the judge is called {path.stem!r}; {hint}", path=str(path))
        template = known[path.stem]
        instructions, *data = SEPARATOR.split(template.text, maxsplit=1)
        examples = _examples(template.step, str(path)).replace("{", "{{")
        examples = SEPARATOR.sub(r" \g<0>", examples)  # a rule of Markdown would end the instructions
        shown[path.stem] = replace(template, text="\n---\n".join([f"{instructions.rstrip()}\n\n{examples}", *data]))
    return shown


def _examples(name: str, path: str) -> str:
    """One step's examples as they appear in the prompt; the step's own reader checks each."""
    step, shown = step_named(name), []
    for line, text in json_lines.numbered_lines(path):
        row = json_lines.parse_line(path, line, text)
        if not isinstance(row, dict) or row.keys() != {*step.variables, _REPLY}:
            raise InputError(f"expected an object with {', '.join((*step.variables, _REPLY))}", path=path, line=line)
        if problem := _shape_problem(row, step.items):
            raise InputError(problem, path=path, line=line)
        reply = json.dumps(row[_REPLY], ensure_ascii=False)
        numbered = {str(number): item for number, item in enumerate(row[step.items])} if step.items else {}
        values = {variable: row[variable] for variable in step.variables}
        values |= {step.items: row[step.items] if step.lists_items else numbered} if step.items else {}
        try:
            step.read(values, reply)
        except CallError as error:
            raise InputError(f"the reply cannot be read: {error}", path=path, line=line) from error
        first = 1 if step.lists_items else 0
        texts = (f"{variable}: {_format_value(row[variable], first)}" for variable in step.variables)
        shown.append("\n".join((*texts, f"{_REPLY}: {reply}")))
    if not shown:
        raise InputError("holds no example", path=path)
    return "\n\n".join(("Examples of right replies to other texts:", *shown))


def _shape_problem(row: Mapping[str, Any], items: str | None) -> str | None:
    for name, value in row.items():
        is_list = isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)
        if name == items and not is_list:
            return f"{name} is not a list of texts"
        if name not in (items, _REPLY) and not isinstance(value, str):
            return f"{name} is not a text"
    return None


def _format_value(value: str | list[str], first: int) -> str:
    if isinstance(value, str):
        return value
    return "\n".join(("", *(f"[{number}] {item}" for number, item in enumerate(value, start=first))))


def _plug_in_templates() -> Mapping[str, Template]:
    others = (step for step in steps() if step.prompt)
    return {step.name: Template(step.name, step.prompt, f"{step.name}.txt", _schema) for step in others}


def _schema(step: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    return step_named(step).schema(values)


def _checked_template(template: Template, path: str) -> Template:
    needed = step_named(template.step).variables
    check_template(template.text, (*needed, FENCE), path)
    missing = [name for name in needed if name != "query" and f"{{{name}}}" not in template.text]
    if missing:
        raise InputError(f"lacks {{{missing[0]}}}: the judge would not see it", path=path)
    return template
