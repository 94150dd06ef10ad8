"""A lint for plain English in docstrings, messages, identifiers and the tables of the documentation.

python tests/support/english.py              count findings by folder; fail where a folder has more than ALLOWED
python tests/support/english.py --list PATH  print the findings below paths, each with its line
"""

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
ALLOWED = {"deploy": 0, "docs": 0, "pipelines": 0, "rankbeam": 0, "tests": 0, "transforms": 3}
"""The most findings of a folder. Lower a number when a folder has fewer; never raise one."""

GENERATED = frozenset({".git", "build", "dist", "out"})

EXCEPTIONS: frozenset[tuple[str, str]] = frozenset(
    {
        ("tests/support/standins/rag_corpora.py", "Connection reset by peer"),  # words of gRPC
    }
)
"""Findings that are right as they are: a path and the text of the finding."""

WORDS = frozenset({"each", "given", "asked", "wanted", "said", "made", "found", "told", "kept", "held", "heard"})
PRIVATE = frozenset({
    "took", "reach", "flight", "heard", "shelf", "site", "around", "rehearse", "rehearsal", "guess", "draft", "drafts",
    "upkeep", "searched", "wanted", "made", "spoken", "hopeless", "stranger", "strangers",
})  # fmt: skip
_CLAUSE = re.compile(r"(What|Whether|How|Which|Where|Why|Of)\b")
_ARGUMENT = re.compile(r"^ +(\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*)$")
_DANGLING = re.compile(
    r"(of|that|which|what|how|where|why|who|whose|(?:by|after|in|on|to|for|with|from|at) which)\b", re.I
)
_SECTION = re.compile(r"^ *(Args|Attributes|Returns|Raises|Yields):$")
_WORDING = re.compile(
    r"\b(?:so (?:many|much|far) of|(?:is|are) said|stands? (?:beside|for|in|behind|on|between|where|there)|"
    r"lies? (?:beside|below)|(?<!there )(?:is|are) no (?!longer|more|less|fewer|better|worse|such)[a-z]+\b|"
    r"where there is none|has to be there|it is that of)",
    re.I,
)
_CELL = re.compile(r"\| *Of\b")
_VERB = re.compile(
    r"\b(is|are|was|were|be|been|am|has|have|had|do|does|did|don't|can|cannot|can't|could|may|might|must|will|would|shall|"
    r"should|needs?|takes?|gives?|names?|use|uses|set|sets|holds?|exists?|lacks?|fails?|write|writes|put|puts|run|runs|"
    r"reads?|contains?|begins?|ends?|means?|makes?|comes?|goes|says?|belongs?|differs?|remove|add|choose|install|try|wait|"
    r"see|know|knows|leave|leaves|left|keeps?|stops?|starts?|allows?|wants?|got|get|cut|"
    r"no|not|without|occurs?|agree|answers?|at most|unknown|invalid|missing|too|only|\w+ed|\w+n't)\b",
    re.I,
)


@dataclass(frozen=True)
class Finding:
    """Wording that a reader stumbles over."""

    path: str
    line: int
    rule: str
    text: str


def findings(path: str, text: str) -> Iterator[Finding]:
    """The findings of one file."""
    if path.endswith(".md"):
        for number, line in enumerate(text.splitlines(), 1):
            if line.startswith("|") and _CELL.search(line):
                yield Finding(path, number, "cell", line)
            if _WORDING.search(line):
                yield Finding(path, number, "wording", line)
        return
    if Path(path).stem.lstrip("_") in PRIVATE:
        yield Finding(path, 1, "identifier", Path(path).stem)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for rule, line, words in (*_names(node), *_docstring(node), *_messages(node)):
            yield Finding(path, line, rule, words)


def _names(node: ast.AST) -> Iterator[tuple[str, int, str]]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            pass
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            pass
        case _:
            return
    plain = name.strip("_").lower()
    if plain in WORDS or (plain in PRIVATE and not isinstance(node, ast.Name | ast.arg)):
        yield "identifier", node.lineno, name


def _docstring(node: ast.AST) -> Iterator[tuple[str, int, str]]:
    for statement in getattr(node, "body", ()) if isinstance(getattr(node, "body", ()), list) else ():
        match statement:
            case ast.Expr(value=ast.Constant(value=str(text))):
                if _CLAUSE.match(text):
                    yield "clause", statement.lineno, text.splitlines()[0]
                yield from _arguments(statement.lineno, text)
                for number, line in enumerate(text.splitlines(), statement.lineno):
                    if _WORDING.search(line):
                        yield "wording", number, line.strip()


def _arguments(first: int, text: str) -> Iterator[tuple[str, int, str]]:
    inside = False
    for number, line in enumerate(text.splitlines(), first):
        inside = bool(_SECTION.match(line)) or (inside and (not line or line.startswith(" ")))
        match = _ARGUMENT.match(line) if inside else None
        if match and _DANGLING.match(match[2]):
            yield "argument", number, line.strip()


def _messages(node: ast.AST) -> Iterator[tuple[str, int, str]]:
    match node:
        case ast.Raise(exc=ast.Call(args=[*arguments])):
            for argument in arguments:
                text = _literal(argument)
                if _WORDING.search(text):
                    yield "wording", argument.lineno, text
                if len(re.findall(r"[a-z]{2,}", text)) > 3 and not _VERB.search(text):
                    yield "message", argument.lineno, text


def _literal(node: ast.expr) -> str:
    """The text of a literal, with … for what is put into it; empty for anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(value.value if isinstance(value, ast.Constant) else "…" for value in values)
    return ""


def files_of(root: Path, below: tuple[str, ...] = ()) -> list[str]:
    """The Python and Markdown files that git knows below some paths; in a ZIP of the source, all but generated ones."""
    command = ["git", "-C", str(root), "ls-files", "-z"]
    names: list[str] = []
    with suppress(FileNotFoundError):  # git is not installed
        names = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split("\0")[:-1]
    if not names:
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if not name.startswith(".venv") and name not in GENERATED)
            names += [(Path(folder) / name).relative_to(root).as_posix() for name in sorted(files)]
    listed = [name for name in names if name.endswith((".py", ".md")) and name.startswith(below or "")]
    return [name for name in listed if (root / name).is_file()]


def repository_findings(paths: Sequence[str] = ()) -> list[Finding]:
    """The findings of all files, or of those below some paths, without the exceptions."""
    names = files_of(REPOSITORY, tuple(paths))
    every = [finding for name in names for finding in findings(name, (REPOSITORY / name).read_text(encoding="utf-8"))]
    return [finding for finding in every if (finding.path, finding.text) not in EXCEPTIONS]


def main(arguments: Sequence[str]) -> int:
    """Count or list; the exit status is 1 where a folder has more findings than it may."""
    if arguments[:1] == ["--list"]:
        for finding in repository_findings(arguments[1:]):
            print(f"{finding.path}:{finding.line}: {finding.rule}: {finding.text}")
        return 0
    counts: dict[str, Counter[str]] = {}
    for finding in repository_findings():
        folder = finding.path.partition("/")[0] if "/" in finding.path else "docs"
        counts.setdefault(folder, Counter())[finding.rule] += 1
    over = {folder for folder, rules in counts.items() if rules.total() > ALLOWED.get(folder, 0)}
    for folder, rules in sorted(counts.items()):
        allowed, details = ALLOWED.get(folder, 0), ", ".join(f"{count} {rule}" for rule, count in rules.most_common())
        print(f"{folder}: {rules.total()} findings of plain English ({details}); {allowed} allowed")
    if over:
        print(f"Mend the new ones: python tests/support/english.py --list {' '.join(sorted(over))}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
