"""Read YAML together with the line of every value, so that messages can name the line.

Pydantic's errors become messages in the user's terms: the line, the key, the value, the nearest valid name.
"""

import contextlib
import re
from dataclasses import dataclass
from typing import Any, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from rankbeam.transforms.clients.extras import MISSING
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.wrong_values import in_one, in_words, without_types

Place = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_MERGE, _VALUE, _BOOL, _INT, _FLOAT = (_TAG + name for name in ("merge", "value", "bool", "int", "float"))
_MOST_REPEATED = 100_000
"""The most values that aliases may expand to: ten lines of nested aliases could expand to ten billion values."""


@dataclass(frozen=True)
class Located:
    """A YAML document."""

    path: str | None  # the file, for messages; None for a text that rankbeam made itself
    value: Any
    lines: dict[Place, int]  # the line, from 1, of every key and item, by place: ("dataset", "qrels"), ("metrics", 0)
    repeated: tuple[Place, ...]

    def error(self, place: Place, problem: str) -> InputError:
        """The error for a problem at a place, with the line of the place or of its nearest parent in the file."""
        line = next((self.lines[place[:end]] for end in range(len(place), -1, -1) if place[:end] in self.lines), 1)
        name = spelled(place)
        if self.path is None:
            return InputError(problem)
        return InputError(f"{name}: {problem}" if name else problem, path=self.path, line=line)

    def duplicate_keys(self) -> list[InputError]:
        """The error for each key that a mapping has twice."""
        return [self.error(place, "is given twice; keep one") for place in self.repeated]


def spelled(place: Place) -> str:
    """A place in the notation of messages.

    >>> spelled(("configurations", 0, "retriever", "k1"))
    'configurations[0].retriever.k1'
    """
    name = ""
    for part in place:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return name


def load(text: str, path: str | None) -> Located:
    """Read a YAML document.

    >>> load("metrics:\\n- AP\\n- RR", "e.yaml").lines[("metrics", 1)]
    3
    """
    try:
        reader = _Reader(_Loader(text))
        value = reader.read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        what = "" if path is None else "is not valid YAML: "
        raise InputError(f"{what}{error.problem or error.context}", path=path, line=line) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problem = f"is not valid YAML: the character U+{int(error.character):04X} is not allowed"
        raise InputError(problem, path=path, line=line) from error
    except RecursionError as error:
        raise InputError("is not valid YAML: it is nested too deeply", path=path) from error
    return Located(path, value, reader.lines, tuple(reader.repeated))


class _Loader(yaml.SafeLoader):
    """Safe, and without YAML 1.1's surprising numbers: 1:30 and 010 are texts here, not 90 and 8."""

    yaml_implicit_resolvers = {  # noqa: RUF012  as in the base class
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_INT, _FLOAT)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver(
    _INT, re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(
        r"(?:(?:[-+]?[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)


class _Reader:
    """Converts nodes into values, and records their lines."""

    def __init__(self, loader: _Loader) -> None:
        self.lines: dict[Place, int] = {}
        self.repeated: list[Place] = []
        self._loader = loader
        self._open: list[yaml.Node] = []
        self._read_once: set[yaml.Node] = set()
        self._read_again = 0
        self._merging: list[yaml.Node] = []
        self._merged: dict[yaml.Node, _Pairs] = {}

    def read(self) -> Any:
        root = self._loader.get_single_node()
        return None if root is None else self._read(root, ())

    def _read(self, node: yaml.Node, place: Place) -> Any:
        self._count(node)
        self.lines[place] = self.lines.get(place, node.start_mark.line + 1)
        if node in self._open:
            raise _error(node, "an anchor contains itself")
        self._open.append(node)
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self._read(item, (*place, i)) for i, item in enumerate(node.value)]
            return self._mapping(node, place) if isinstance(node, yaml.MappingNode) else self._scalar(node)
        finally:
            self._open.pop()

    def _count(self, node: yaml.Node) -> None:
        """Refuse aliases that expand to more values than memory holds."""
        self._read_again += node in self._read_once
        self._read_once.add(node)
        if self._read_again > _MOST_REPEATED:
            raise _error(node, f"aliases expand to more than {_MOST_REPEATED:,} values here; write fewer of them")

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        own: set[str] = set()
        for key in (self._key(key) for key, _ in node.value if key.tag != _MERGE):
            self.repeated += [(*place, key)] if key in own else []
            own.add(key)
        value: dict[str, Any] = {}
        for key, (key_node, item) in self._pairs(node).items():
            self.lines[*place, key] = key_node.start_mark.line + 1
            value[key] = self._read(item, (*place, key))
        return value

    def _pairs(self, node: yaml.MappingNode) -> "_Pairs":
        """Keys with their nodes: merged keys come first, and the mapping's own keys replace them."""
        if node in self._merged:
            return self._merged[node]
        if node in self._merging:
            raise _error(node, "an anchor contains itself")
        self._merging.append(node)
        pairs: _Pairs = {}
        for key, item in node.value:
            if key.tag == _MERGE:
                merged = item.value if isinstance(item, yaml.SequenceNode) else [item]
                for mapping in reversed(merged):  # the first one wins
                    if not isinstance(mapping, yaml.MappingNode):
                        raise _error(mapping, "only mappings can be merged with <<")
                    pairs |= self._pairs(mapping)
        pairs |= {self._key(key): (key, item) for key, item in node.value if key.tag != _MERGE}
        self._merging.pop()
        self._merged[node] = pairs
        return pairs

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise _error(node, "a key must be a single value")
        return str(node.value if node.tag in (_VALUE, _BOOL) else self._scalar(node))

    def _scalar(self, node: yaml.Node) -> Any:
        try:
            value = self._loader.construct_object(node, deep=True)
        except ValueError as error:
            raise _error(node, f"{node.value!r} cannot be read ({error}); put it in quotes if it is a text") from error
        if not isinstance(value, str) or value.isascii():
            return value
        try:  # JSON writes some characters, such as emoji, as two halves
            return value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            problem = r"is not valid Unicode (half a character such as \ud83d, or a file name that is not UTF-8)"
            raise _error(node, f"{value!r} {problem}; rename it") from error


_Pairs = dict[str, tuple[yaml.Node, yaml.Node]]


def _error(node: yaml.Node, problem: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


Model = TypeVar("Model", bound=BaseModel)

_KEY = "[key]"
"""Suffix that pydantic adds to the place of an invalid key."""


def problems_of(located: Located, model: type[BaseModel], error: ValidationError, at: Place = ()) -> list[InputError]:
    """All problems of a value in the user's terms, one for each place."""
    return [problem_of(located, model, detail, at) for detail in in_one(error.errors())]


def problem_of(located: Located, model: type[BaseModel], error: dict[str, Any], at: Place = ()) -> InputError:
    place: Place = (*at, *without_types(tuple(part for part in error["loc"] if part != _KEY)))
    kind, value = error["type"], error["input"]
    if kind == "extra_forbidden":
        valid = _keys_of(model, error["loc"][:-1])
        return located.error(place, f"unknown key; {did_you_mean(str(place[-1]), valid)}")
    if kind == "missing":
        return located.error(place, "is missing")
    # Pydantic's own setting for models whose values may be secrets.
    hidden = kind == MISSING or model.model_config.get("hide_input_in_errors")
    shown = "" if hidden else f", found {_shown(value)}"
    return located.error(place, f"{in_words(error)}{shown}")


def _keys_of(model: type[BaseModel] | None, place: Place) -> list[str]:
    is_key = False
    for part in place:
        if isinstance(part, str) and model is not None and not is_key:
            annotation = model.model_fields[part].annotation
            model, is_key = _model_in(annotation), get_origin(annotation) is dict
        else:
            is_key = False
    return [] if model is None else list(model.model_fields)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def validated(model: type[Model], located: Located, problems: list[InputError]) -> Model:
    """The model of a file, or, with the problems added, what can be used of it."""
    try:
        return model.model_validate(located.value)
    except ValidationError as error:
        problems += problems_of(located, model, error)
        return salvage(model, located.value)


def salvage(model: type[Model], value: object) -> Model:
    """The valid parts of a value that is not a valid `model`, so that one pass can check them further."""
    content = value if isinstance(value, dict) else {}
    model_of_valid = model.model_construct()
    for name, field in model.model_fields.items():
        inner = _model_in(field.annotation)
        given_value = content.get(name)
        if inner is not None and (given_value is not None or field.is_required()):
            model_of_valid.__dict__[name] = _salvaged(inner, get_origin(field.annotation), given_value)
            continue
        model_of_valid.__dict__[name] = None if field.is_required() else field.get_default(call_default_factory=True)
        if name in content:
            with contextlib.suppress(ValidationError):
                model_of_valid.__pydantic_validator__.validate_assignment(model_of_valid, name, given_value)
    return model_of_valid


def _salvaged(model: type[BaseModel], origin: Any, value: object) -> Any:
    """Return the valid part of a model, of a list of models, or of models by name."""
    if origin is list:
        return [salvage(model, item) for item in value if isinstance(item, dict)] if isinstance(value, list) else None
    if origin is dict:
        named = value if isinstance(value, dict) else {}
        return {name: salvage(model, item) for name, item in named.items() if isinstance(item, dict)}
    return salvage(model, value)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds, directly or as the items of a list."""
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None
