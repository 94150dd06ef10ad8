"""Messages of Google's services without the clients, which take 0.8 and 1.3 s to import."""

import importlib
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any


def module(package: str, name: str) -> Any:
    """Import one module of a package's `types`, and none of the others, which `__init__` of both would import.

    The others are imported as soon as something else of the package is used: tests fork a process that has imported
    the stand-ins, and let it run clients.

    Args:
        package: such as "google.cloud.discoveryengine_v1".
        name: name of the module, such as "search_service".
    """
    for outer in (package, f"{package}.types"):
        if outer not in sys.modules:
            sys.modules[outer] = _without_init(outer)
    return importlib.import_module(f"{package}.types.{name}")


def _without_init(package: str) -> ModuleType:
    """A package whose modules can be imported, and that runs its `__init__` only when it is asked for anything else."""
    parent, _, name = package.rpartition(".")
    places = importlib.import_module(parent).__path__
    module = ModuleType(package)
    module.__path__ = [str(Path(path, name)) for path in places]

    def whole(attribute: str) -> Any:
        if attribute.startswith("__") or any(Path(path, f"{attribute}.py").exists() for path in module.__path__):
            raise AttributeError(attribute)  # a module is imported alone
        del module.__getattr__
        module.__spec__ = PathFinder.find_spec(package, list(places))
        assert module.__spec__ is not None
        assert module.__spec__.loader is not None
        module.__spec__.loader.exec_module(module)
        return getattr(module, attribute)

    module.__getattr__ = whole  # type: ignore[method-assign]  the hook of PEP 562
    return module
