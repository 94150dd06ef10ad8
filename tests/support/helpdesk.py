"""The example of a helpdesk with fewer queries, for tests that need real texts and not many."""

from pathlib import Path

from support.data import REPOSITORY
from support.inputs import write

HELPDESK = REPOSITORY / "examples" / "helpdesk"


def few(folder: Path, queries: int) -> Path:
    """Write a folder with the corpus, the first queries and their judgements; returns it."""
    place = folder / "helpdesk"
    lines = {name: _lines(name) for name in ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv")}
    head, *judgements = lines["qrels/test.tsv"]
    rest = "".join(lines["queries.jsonl"][queries:])
    lines["queries.jsonl"] = lines["queries.jsonl"][:queries]
    lines["qrels/test.tsv"] = [head, *(line for line in judgements if f'"{line.split()[0]}"' not in rest)]
    for name, content in lines.items():
        write(place / name, "".join(content))
    return place


def _lines(name: str) -> list[str]:
    return (HELPDESK / name).read_text(encoding="utf-8").splitlines(keepends=True)
