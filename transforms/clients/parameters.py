"""Parameters of an experiment's components: the keys of their YAML, and those that identify a configuration.

Component types are registered by entry point group.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, ClassVar, Generic, Self, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.plug_ins import entry_points_of, load_plug_in, plug_in_label

Base = TypeVar("Base")
_ALIAS = re.compile(r"(?:^|.*[-:@_/.])latest")


def is_alias(model: str) -> bool:
    """Return whether a model name may refer to another model later.

    >>> is_alias("semantic-ranker-default@latest"), is_alias("semantic-ranker-default-004")
    (True, False)
    """
    return _ALIAS.fullmatch(model.lower()) is not None


def matching(form: re.Pattern[str], problem: str) -> AfterValidator:
    def checked(value: str) -> str:
        if form.fullmatch(value) is None:
            raise ValueError(problem)
        return value

    return AfterValidator(checked)


class Parameters(BaseModel):
    """The parameters of one type of component, for example of a type of retriever or model.

    A subclass is a pydantic model; its fields are the parameters. Unknown keys are refused.

    Attributes:
        operational: parameters that never change an answer; a configuration's identity leaves them out.
        added: parameters that the first release of this type did not have. They are part of a configuration's identity
            only if they differ from their default, so that configurations without them keep their `config_id`.
        referring: parameters that keep `${env:…}` and `${secret:…}`, because the component resolves them itself. In all
            others, a reference to a variable is replaced by its value before the parameters are checked.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse a boolean instead of a number: YAML's `yes` and `on` are booleans, which pydantic would read as 1."""
        kinds = set(_kinds(cls.model_fields[info.field_name or ""].annotation))
        parts = list(value.values()) if isinstance(value, Mapping) else value
        items = parts if isinstance(parts, list | tuple) else [parts]
        if any(isinstance(item, bool) for item in items) and not kinds & {bool, Any, object}:
            if float in kinds:
                raise PydanticCustomError("float_type", "Input should be a valid number")
            if int in kinds:
                raise PydanticCustomError("int_type", "Input should be a valid integer")
        return value

    operational: ClassVar[frozenset[str]] = frozenset()
    added: ClassVar[frozenset[str]] = frozenset()
    referring: ClassVar[frozenset[str]] = frozenset()

    def decisive(self) -> dict[str, Any]:
        """The parameters that identify a configuration, as JSON values.

        >>> class First(Parameters):
        ...     added = frozenset({"suffix"})
        ...     prefix: str = ""
        ...     suffix: str = ""
        >>> First().decisive(), First(suffix="x").decisive()
        ({'prefix': ''}, {'prefix': '', 'suffix': 'x'})
        """
        values = self.model_dump(mode="json", exclude=set(self.operational))
        changed = self.model_dump(mode="json", include=set(self.added), exclude_defaults=True)
        return {name: value for name, value in values.items() if name not in self.added or name in changed}

    def inputs(self) -> dict[str, str]:
        """Files that the component needs: the parameter's name and the path."""
        return {}

    def secret_places(self) -> Mapping[str, str]:
        """The place, for messages, of each reference to a secret; the process that makes calls resolves them."""
        return {}

    def unset(self) -> Iterable[tuple[tuple[str | int, ...], str]]:
        """Values that `resolved` needs but this machine lacks: their place below the component, and the reason."""
        return ()

    def resolved(self, folder: str) -> Self:  # noqa: ARG002  for subclasses that have paths
        """The parameters for any machine, with relative paths resolved below `folder`; unchanged by default."""
        return self


def _kinds(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from _kinds(part)


@dataclass(frozen=True)
class Kind(Generic[Base]):
    """A kind of component; any installed package can register types of it."""

    name: str  # for messages, for example "retriever"
    group: str
    base: type[Base]
    methods: tuple[str, ...] = ()  # every type defines one of these

    @property
    def types(self) -> Mapping[str, EntryPoint]:
        """The entry points of all installed types, by type."""
        return entry_points_of(self.group)

    def load(self, name: str) -> type[Base]:
        if name not in self.types:
            hint = did_you_mean(name, self.types) if self.types else f"no type of {self.name} is installed"
            raise InputError(f"unknown {self.name} type {name!r}; {hint}")
        model = load_plug_in(self.group, name)
        if not (isinstance(model, type) and issubclass(model, self.base)):
            problem = f"{self.types[name].value} is not a subclass of {self.base.__name__}"
            raise InputError(f"{plug_in_label(self.group, name)}: {problem}")
        if self.methods and all(getattr(model, method) is getattr(self.base, method) for method in self.methods):
            problem = f"{self.types[name].value} does not define {self.methods[0]}()"
            raise InputError(f"{plug_in_label(self.group, name)}: {problem}")
        return model
