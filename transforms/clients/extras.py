"""Libraries that few experiments need: each is an extra of the package, and messages name a missing one."""

from importlib.util import find_spec

SEARCH = "search"  # Vertex AI Search
SECRETS = "secrets"  # Secret Manager
IR_DATASETS = "ir-datasets"
"""Collections by name. They are fetched on the machine that submits a run, so workers do not need this library."""
MLFLOW = "mlflow"  # the tracker that `rankbeam log` copies runs to
DOCUMENTS = "documents"
"""PDF files. Their text is extracted on the machine that submits a run, so workers do not need this library."""
LOCAL = "local"  # models in this process: ONNX Runtime and tokenizers
EXTRAS = (SEARCH, SECRETS, LOCAL)
"""The extras that workers may need: those installed here are installed on workers, too."""
MISSING = "missing_library"  # type of a pydantic error about this machine, not about the value


def missing_extra(module: str, extra: str, service: str) -> str | None:
    """A message if a library is not installed, else None.

    >>> missing_extra("json", SEARCH, "JSON")
    >>> missing_extra("google.cloud.no_such_thing", SEARCH, "Vertex AI Search")
    "the library of Vertex AI Search is not installed: pip install 'rankbeam[search]'"
    """
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # the package of the module is missing
        spec = None
    return None if spec else f"the library of {service} is not installed: pip install 'rankbeam[{extra}]'"
