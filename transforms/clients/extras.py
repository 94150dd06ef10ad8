"""Libraries that few experiments need: each is an extra of the package, and is named where it is missing."""

from importlib.util import find_spec

SEARCH = "search"
"""Vertex AI Search."""
SECRETS = "secrets"
"""Secret Manager."""
IR_DATASETS = "ir-datasets"
"""Collections by name. They are fetched where a run is submitted, so workers do not need it."""
MLFLOW = "mlflow"
"""The tracker that `rankbeam log` copies runs to."""
DOCUMENTS = "documents"
"""PDF files. Their text is extracted where a run is submitted, so workers do not need it."""
LOCAL = "local"
"""Models in this process: ONNX Runtime and tokenizers."""
EXTRAS = (SEARCH, SECRETS, LOCAL)
"""The extras that workers need. What is installed of them here, workers install as well."""
MISSING = "missing_library"
"""Kind of a pydantic error that is about this machine, not about the value."""


def missing(module: str, extra: str, service: str) -> str | None:
    """The problem if a library is not installed, else None.

    >>> missing("json", SEARCH, "JSON")
    >>> missing("google.cloud.no_such_thing", SEARCH, "Vertex AI Search")
    "the library of Vertex AI Search is not installed: pip install 'rankbeam[search]'"
    """
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # of a package that the module would be in
        spec = None
    return None if spec else f"the library of {service} is not installed: pip install 'rankbeam[{extra}]'"
