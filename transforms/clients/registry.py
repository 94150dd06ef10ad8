"""Kinds of components by entry point group: the types that installed packages register, and how one is found."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Generic, TypeVar

from rankbeam.transforms.records.errors import InputError
from rankbeam.transforms.records.plug_ins import loaded, registered
from rankbeam.transforms.records.suggestions import did_you_mean

Base = TypeVar("Base")


@dataclass(frozen=True)
class Kind(Generic[Base]):
    """A kind of component, of which any installed package can register types."""

    name: str  # such as "retriever", for messages
    group: str
    base: type[Base]
    methods: tuple[str, ...] = ()

    @property
    def types(self) -> Mapping[str, EntryPoint]:
        """The entry point of every type that is installed, by type."""
        return registered(self.group)

    def load(self, name: str) -> type[Base]:
        """The class of a type."""
        if name not in self.types:
            hint = did_you_mean(name, self.types) if self.types else f"no type of {self.name} is installed"
            raise InputError(f"unknown {self.name} type {name!r}; {hint}")
        model = loaded(self.group, name, f"{self.name} type")
        if not (isinstance(model, type) and issubclass(model, self.base)):
            problem = f"{self.types[name].value} is no {self.base.__name__}"
            raise InputError(f"{self.name} type {name!r}: {problem}")
        lacking = [method for method in self.methods if getattr(model, method) is getattr(self.base, method)]
        if lacking:
            raise InputError(f"{self.name} type {name!r}: {self.types[name].value} does not define {lacking[0]}()")
        return model
