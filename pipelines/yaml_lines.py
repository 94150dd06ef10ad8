"""YAML that remembers where everything stood, so that a message can name the line."""

from dataclasses import dataclass
from typing import Any

import yaml

from transforms.records.errors import InputError

Place = tuple[str | int, ...]

_MERGE = "tag:yaml.org,2002:merge"


@dataclass(frozen=True)
class Located:
    """A YAML document.

    Attributes:
        path: the file, for messages; None for a text that no user wrote.
        value: its content, as Python values.
        lines: the line, from 1, of every key and item, by place: ("dataset", "qrels"), ("metrics", 0).
        repeated: keys that were given twice in one mapping.
    """

    path: str | None
    value: Any
    lines: dict[Place, int]
    repeated: tuple[Place, ...]

    def error(self, place: Place, problem: str) -> InputError:
        """The problem at a place, with the line of the nearest place that stands in the file."""
        line = next((self.lines[place[:end]] for end in range(len(place), -1, -1) if place[:end] in self.lines), 1)
        name = spelled(place)
        if self.path is None:
            return InputError(problem)
        return InputError(f"{name}: {problem}" if name else problem, path=self.path, line=line)


def spelled(place: Place) -> str:
    """A place as people write it.

    >>> spelled(("configurations", 0, "retriever", "k1"))
    'configurations[0].retriever.k1'
    """
    name = ""
    for part in place:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return name


def load(text: str, path: str | None) -> Located:
    """Read a YAML document.

    Args:
        text: its text.
        path: the file it comes from, for messages; None for a text that no user wrote.

    Raises:
        InputError: it is not valid YAML.

    >>> load("metrics:\\n- AP\\n- RR", "e.yaml").lines[("metrics", 1)]
    3
    """
    try:
        reader = _Reader(yaml.SafeLoader(text))
        value = reader.read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        raise InputError(f"is not valid YAML: {error.problem or error.context}", path=path, line=line) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problem = f"is not valid YAML: the character U+{int(error.character):04X} is not allowed"
        raise InputError(problem, path=path, line=line) from error
    except RecursionError as error:
        raise InputError("is not valid YAML: it is nested too deeply", path=path) from error
    return Located(path, value, reader.lines, tuple(reader.repeated))


class _Reader:
    """Turns nodes into values, and notes where they stood."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self.lines: dict[Place, int] = {}
        self.repeated: list[Place] = []
        self._loader = loader
        self._open: list[yaml.Node] = []

    def read(self) -> Any:
        root = self._loader.get_single_node()
        return None if root is None else self._read(root, ())

    def _read(self, node: yaml.Node, place: Place) -> Any:
        if node in self._open:
            raise yaml.constructor.ConstructorError(None, None, "an anchor holds itself", node.start_mark)
        self.lines[place] = self.lines.get(place, node.start_mark.line + 1)
        self._open.append(node)
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self._read(item, (*place, i)) for i, item in enumerate(node.value)]
            return self._mapping(node, place) if isinstance(node, yaml.MappingNode) else self._scalar(node)
        finally:
            self._open.pop()

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        own = [self._key(key) for key, _ in node.value if key.tag != _MERGE]
        self.repeated += [(*place, key) for i, key in enumerate(own) if key in own[:i]]
        self._loader.flatten_mapping(node)  # what is merged comes first, and what is given here replaces it
        value: dict[str, Any] = {}
        for key_node, item in node.value:
            key = self._key(key_node)
            self.lines[*place, key] = key_node.start_mark.line + 1
            value[key] = self._read(item, (*place, key))
        return value

    def _key(self, node: yaml.Node) -> str:
        return str(self._scalar(node))

    def _scalar(self, node: yaml.Node) -> Any:
        try:
            return self._loader.construct_object(node, deep=True)
        except ValueError as error:
            advice = f"{node.value!r} cannot be read ({error}); put it in quotes if it is a text"
            raise yaml.constructor.ConstructorError(None, None, advice, node.start_mark) from error
