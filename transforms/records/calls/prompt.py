"""Prompts of models: a step with structured values, and the templates that render them for a language model.

The payload of a model's call is a `Prompt` as JSON. The model's connection renders it, so a service without a language
model answers from `step` and `values` alone. Templates are replaced in one pass: `{name}` is a value, `{{` a literal
brace, and braces inside values are not replaced. A line `---` separates the system's text from the user's.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from json import JSONEncoder
from types import MappingProxyType
from typing import Any

from rankbeam.transforms.records.errors import InputError, did_you_mean

FENCE = "fence"
"""The variable that separates data from instructions: a hash of all values, so no text can contain it on purpose."""
EMBED = "embed"  # the step that requests the embedding of the value `text`

SEPARATOR = re.compile(r"^---[ \t]*\r?\n", re.MULTILINE)  # the line between a template's instructions and its data
_TOKEN = re.compile(r"\{\{|\{(\w+)\}|\{")
_CHARACTERS_OF_A_HASH = 16
_MARKER = re.compile(r"\W*?[\[［【〔]\W{0,5}\d+\W{0,5}[\]］】〕]")
"""The beginning of a line that could pass for the beginning of an item."""
Schema = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
"""Returns the JSON schema of the answer, from a step and the values of its prompt."""
_NAME = re.compile(r"(?P<step>\w+)\.v(?P<version>\d+)\.txt")
_FOLDER = "prompts"
_TEMPLATES = 256
"""Templates whose hashes and parts are remembered: an experiment has some dozens, and uses each thousands of times."""
_PAYLOAD = JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SORTED = JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)


@dataclass(frozen=True)
class RenderedPrompt:
    """A prompt as a language model reads it."""

    system: str
    user: str


@dataclass(frozen=True)
class Prompt:
    """One question to a model.

    Attributes:
        step: the kind of question, such as "support".
        values: the values of the templates' variables. A mapping of ids to texts is a set of items: it is rendered as
            lines `[id] text` in an order that depends on the content and the sample, so that no item is always first.
            A list is rendered in its order, numbered from 1; its items are texts, or mappings with `id` and `text`.
            If a line within an item could pass for another item, all items of the value are fenced.
        system: template of the instructions.
        user: template of the question.
        schema: JSON schema of the answer; None for any text.
        max_output_tokens: limit of the answer, thinking included.
        temperature: sampling temperature.
        seed: sampling seed; None for none.
        thinking: budget of thinking tokens; None for the model's default.
        sample: number of this answer among several to one question, from 0.
    """

    step: str
    values: Mapping[str, Any]
    system: str = ""
    user: str = ""
    schema: Mapping[str, Any] | None = None
    max_output_tokens: int = 1024
    temperature: float = 0.0
    seed: int | None = 0
    thinking: int | None = field(default=None, kw_only=True)
    sample: int = field(default=0, kw_only=True)

    def payload(self) -> str:
        """The prompt as JSON, as `Connection.call` takes it."""
        return _PAYLOAD.encode(vars(self))

    @classmethod
    def parse(cls, payload: str) -> "Prompt":
        """Parse a payload.

        >>> prompt = Prompt("answer", {"query": "who?"}, user="{query}")
        >>> Prompt.parse(prompt.payload()) == prompt
        True
        """
        return cls(**json.loads(payload))

    @property
    def fence(self) -> str:
        return _hash([self.step, self.values])[:_CHARACTERS_OF_A_HASH]

    def rendered(self) -> RenderedPrompt:
        """Both templates with the values filled in.

        >>> prompt = Prompt("answer", {"query": "{x}", "contexts": ["a", "b"]}, user="{{q}: {query}, {contexts}")
        >>> prompt.rendered().user.splitlines()
        ['{q}: {x}, [1] a', '[2] b']
        """
        fence = self.fence
        texts = {name: _text(value, fence, self.sample) for name, value in self.values.items()} | {FENCE: fence}
        return RenderedPrompt(_fill_template(self.system, texts), _fill_template(self.user, texts))

    def identity(self, model: Mapping[str, Any]) -> dict[str, Any]:
        """Everything that determines the answer, for `content_key`. Texts are hashed, so that keys do not reveal them.

        Args:
            model: identity and settings of the service, as JSON values.
        """
        settings: dict[str, Any] = {
            "max_output_tokens": self.max_output_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
        }
        settings |= {} if self.thinking is None else {"thinking": self.thinking}
        fenced = sorted(name for name, value in self.values.items() if _is_forged(value))
        settings |= {"fenced": fenced} if fenced else {}  # other prompts keep their keys
        return {
            "stage": "model",
            "step": self.step,
            "template": _hash_of_templates(self.system, self.user),
            "schema": None if self.schema is None else _hash(self.schema),
            "model": dict(model),
            **settings,
            "sample": self.sample,
            "values": {name: _hash_texts(value) for name, value in self.values.items()},
        }


@lru_cache(_TEMPLATES)
def split_template(text: str) -> tuple[str, str]:
    """The templates of system and user; without a line `---`, the whole text is the user's.

    >>> split_template("Be brief.\\n---\\n{query}\\n")
    ('Be brief.', '{query}')
    """
    before, *rest = SEPARATOR.split(text, maxsplit=1)
    system, user = (before, rest[0]) if rest else ("", before)
    return system.strip(), user.strip()


def check_template(text: str, variables: Iterable[str], path: str | None = None) -> None:
    """Refuse a template with a variable that has no value; the message names the first such line."""
    known = list(variables)
    for number, line in enumerate(text.splitlines(), start=1):
        for token in _TOKEN.finditer(line):
            name = token[1]
            if token[0] == "{":
                raise InputError(
                    "a brace does not begin a {variable}; write {{ for a literal brace", path=path, line=number
                )
            if name is not None and name not in known:
                raise InputError(f"unknown variable {{{name}}}; {did_you_mean(name, known)}", path=path, line=number)


def variables_of(template: str) -> frozenset[str]:
    """The variables of a template.

    >>> sorted(variables_of("{query} {{no} {contexts} {query}"))
    ['contexts', 'query']
    """
    return frozenset(token[1] for token in _TOKEN.finditer(template) if token[1] is not None)


@lru_cache(_TEMPLATES)
def template_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_CHARACTERS_OF_A_HASH]


def _fill_template(template: str, texts: Mapping[str, str]) -> str:
    return _TOKEN.sub(lambda token: "{" if token[1] is None else texts[token[1]], template)


def _text(value: Any, fence: str, sample: int) -> str:
    items = _items(value)
    if items is None:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        items.sort(key=lambda item: hashlib.sha256(f"{fence}:{sample}:{item[0]}".encode()).digest())
    if _is_forged(value):
        return "\n".join(f"<<[{name}] {fence}\n{text}\n{fence} [{name}]>>" for name, text in items)
    return "\n".join(f"[{name}] {text}" for name, text in items)


def _items(value: Any) -> list[tuple[str, str]] | None:
    """The items of a value with their names; None for a single text."""
    if isinstance(value, Mapping):
        return [(str(name), str(text)) for name, text in value.items()]
    if isinstance(value, list | tuple):
        return [(str(number), _item(item)) for number, item in enumerate(value, start=1)]
    return None


def _is_forged(value: Any) -> bool:
    """Return whether a line within an item could pass for another item."""
    return any(_MARKER.match(line) for _, text in _items(value) or () for line in text.splitlines()[1:])


def _item(item: Any) -> str:
    return f"({item['id']}) {item['text']}" if isinstance(item, Mapping) else str(item)


def _hash_texts(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _hash_texts(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_hash_texts(item) for item in value]
    return hashlib.sha256(value.encode()).hexdigest() if isinstance(value, str) else value


@lru_cache(_TEMPLATES)
def _hash_of_templates(system: str, user: str) -> str:
    return _hash([system, user])


def _hash(value: Any) -> str:
    return hashlib.sha256(_SORTED.encode(value).encode()).hexdigest()


@dataclass(frozen=True)
class Template:
    """The prompt's template of one step."""

    step: str
    text: str
    name: str
    schema: Schema

    @property
    def hash(self) -> str:
        """The template's hash, which is part of every key."""
        return template_hash(self.text)

    def prompt(self, values: Mapping[str, Any], **settings: Any) -> Prompt:
        system, user = split_template(self.text)
        return Prompt(self.step, values, system, user, self.schema(self.step, values), **settings)


def newest(package: str, schema: Schema, most: int = 1) -> Mapping[str, Template]:
    """The newest template of each step, up to a version, that a package ships in its folder `prompts`."""
    latest: dict[str, tuple[int, Template]] = {}
    for file in files(package).joinpath(_FOLDER).iterdir():
        if (match := _NAME.fullmatch(file.name)) is not None:
            step, version = match["step"], int(match["version"])
            if latest.get(step, (0, None))[0] < version <= most:
                latest[step] = version, Template(step, file.read_text(encoding="utf-8"), file.name, schema)
    return MappingProxyType({step: template for step, (_, template) in sorted(latest.items())})
