"""Messages of Google's services without the clients, which take 0.8 and 1.3 s to import."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def module(package: str, name: str) -> Any:
    """Import one module of a package's `types`, and none of the others, which `__init__` of both would import.

    It is for a process that uses nothing else of the package, such as that of a stand-in.

    Args:
        package: such as "google.cloud.discoveryengine_v1".
        name: of the module, such as "search_service".
    """
    for outer in (package, f"{package}.types"):
        if outer not in sys.modules:
            sys.modules[outer] = _without_init(outer)
    return importlib.import_module(f"{package}.types.{name}")


def _without_init(package: str) -> ModuleType:
    """A package whose modules can be imported, and that holds nothing itself."""
    parent, _, name = package.rpartition(".")
    made = ModuleType(package)
    made.__path__ = [str(Path(path, name)) for path in importlib.import_module(parent).__path__]
    return made
