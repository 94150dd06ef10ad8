"""Read YAML together with the line of every value, so that messages can name the line."""

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from rankbeam.transforms.clients.storage import files
from rankbeam.transforms.records.errors import InputError, InputErrors

Place = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_MERGE, _VALUE, _BOOL, _INT, _FLOAT = (_TAG + name for name in ("merge", "value", "bool", "int", "float"))
_MOST_REPEATED = 100_000
"""The most values that aliases may expand to: ten lines of nested aliases could expand to ten billion values."""


@dataclass(frozen=True)
class YamlDocument:
    """A YAML document, and what checks find wrong with it.

    A function that only checks a part of a document yields the problems; one that returns a value reports them.
    """

    path: str | None  # the file, for messages; None for a text that rankbeam wrote itself
    value: Any
    lines: dict[Place, int]  # the line, from 1, of every key and item, by place: ("dataset", "qrels"), ("metrics", 0)
    repeated: tuple[Place, ...]
    problems: list[InputError] = field(default_factory=list)  # all that is wrong with it; checks add to it
    unresolved: list[InputError] = field(default_factory=list)  # those problems that are references without a value
    notes: list[str] = field(default_factory=list)  # warnings; checks add to them

    @property
    def folder(self) -> str:
        """The folder of the file, to which its paths are relative."""
        return files.parent(self.path or "")

    def below(self, path: str) -> str:
        """A path of the file, which may be relative to its folder."""
        return files.below(self.folder, path)

    def error(self, place: Place, problem: str) -> InputError:
        """The error for a problem at a place, with the line of the place or of its nearest parent in the file."""
        line = next((self.lines[place[:end]] for end in range(len(place), -1, -1) if place[:end] in self.lines), 1)
        name = format_place(place)
        if self.path is None:
            return InputError(problem)
        return InputError(f"{name}: {problem}" if name else problem, path=self.path, line=line)

    def report(self, place: Place, problem: str) -> None:
        self.problems.append(self.error(place, problem))

    def refusal(self, place: Place, problem: str) -> InputErrors:
        """A problem without whose solution nothing else can be checked, together with those so far."""
        return InputErrors([*self.problems, self.error(place, problem)])

    def duplicate_keys(self) -> list[InputError]:
        """An error for each key that a mapping has twice."""
        return [self.error(place, "is given twice; keep one") for place in self.repeated]


def format_place(place: Place) -> str:
    """A place in the notation of messages.

    >>> format_place(("configurations", 0, "retriever", "k1"))
    'configurations[0].retriever.k1'
    """
    name = ""
    for part in place:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return name


def mapping_in(value: Any, key: str) -> dict[str, Any]:
    """The mapping under a key of a value that is not checked yet; empty if there is none."""
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def list_in(value: Any, key: str) -> list[Any]:
    """The list under a key of such a value; empty if there is none."""
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, list) else []


_IN_QUOTES = "; put a text with a colon, comma or question mark in quotes"


def load(text: str, path: str | None) -> YamlDocument:
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
        problem = f"{what}{error.problem or error.context}"
        problem += _IN_QUOTES if "mapping values are not" in problem or "expected ',' or '}'" in problem else ""
        raise InputError(problem, path=path, line=line) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problem = f"is not valid YAML: the character U+{int(error.character):04X} is not allowed"
        raise InputError(problem, path=path, line=line) from error
    except RecursionError as error:
        raise InputError("is not valid YAML: it is nested too deeply", path=path) from error
    return YamlDocument(path, value, reader.lines, tuple(reader.repeated))


class _Loader(yaml.SafeLoader):
    """A safe loader without YAML 1.1's surprising numbers: 1:30 and 010 are texts here, not 90 and 8."""

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
        seen: set[str] = set()
        for key in (self._key(key) for key, _ in node.value if key.tag != _MERGE):
            self.repeated += [(*place, key)] if key in seen else []
            seen.add(key)
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
