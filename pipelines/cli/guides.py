"""The page of the documentation that each command's help names."""

from collections.abc import Mapping

DOCUMENTATION = "https://github.com/rankbeam/rankbeam/blob/main/docs"

GUIDES: Mapping[str, str] = {
    "batch": "services",
    "cancel": "cloud",
    "clicks": "formats",
    "compare": "statistics",
    "corpora": "corpora",
    "evalset": "applications",
    "evaluate": "start",
    "gate": "gates",
    "export": "other-tools",
    "goldens": "goldens",
    "holes": "trust",
    "nuggets": "judging",
    "init": "start",
    "judge": "other-tools",
    "label": "trust",
    "ledger": "services",
    "log": "gates",
    "monitor": "trust",
    "plan": "services",
    "rbo": "statistics",
    "report": "report",
    "runs": "tables",
    "schema": "experiment",
    "score": "from-trec_eval",
    "status": "cloud",
    "traces": "traces",
    "trend": "report",
    "validate": "experiment",
    "warehouse": "cloud",
    "worst": "report",
}
"""The page of every command and its subcommands."""


def guide(command: str | None) -> str:
    """The address of the page of a command; of the index for the program's own, and for one without a page.

    >>> guide("gate").rpartition("/")[2]
    'gates.md'
    """
    return f"{DOCUMENTATION}/{GUIDES.get(command or '', 'index')}.md"
