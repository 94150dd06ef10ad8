"""The shape of the code in one or more checkouts, side by side: sizes, circles, arrows up, constructors, names.

python tests/support/shape.py [--names] [CHECKOUT …]    by default this one; --names lists what is counted
"""

import ast
import re
import statistics
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from english import files_of, findings

MOST_LINES = 350
_RECORDS = "rankbeam.transforms.records"
Arrows = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class Module:
    """A file of the product."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def name(self) -> str:
        """The name that other modules import."""
        parts = self.path.removeprefix("rankbeam/").removesuffix(".py").split("/")
        return ".".join(["rankbeam", *parts]).removesuffix(".__init__")

    @property
    def package(self) -> str:
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def kinds(self) -> Counter[str]:
        """The number of lines of each kind."""
        quoted = {
            line
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        kinds: Counter[str] = Counter()
        for number, line in enumerate(self.lines, 1):
            plain = line.strip()
            kinds["docstring" if number in quoted else _kind(plain)] += 1
        return kinds

    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))

    def functions(self) -> Iterator[int]:
        """The lengths of all functions, in lines."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1

    def imports(self, modules: Collection[str]) -> Iterator[str]:
        """The modules that this one imports, at any place."""
        for node in ast.walk(self.tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                members = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [member if member in modules else node.module for member in members]
            yield from (name for name in names if name in modules and name != self.name)


def _kind(line: str) -> str:
    if not line:
        return "blank"
    return "comment" if line.startswith("#") else "code"


@dataclass(frozen=True)
class Shape:
    """A checkout: its product, without tests."""

    root: Path

    @cached_property
    def modules(self) -> list[Module]:
        files = (name for name in files_of(self.root) if name.endswith(".py"))
        paths = [path for path in files if not path.startswith(("tests/", ".ci/"))]
        return [Module(path, (self.root / path).read_text(encoding="utf-8")) for path in paths]

    @cached_property
    def arrows(self) -> dict[str, set[str]]:
        """The imports of each module within the product."""
        names = {module.name for module in self.modules}
        return {module.name: set(module.imports(names)) for module in self.modules}

    @cached_property
    def package_arrows(self) -> dict[str, set[str]]:
        """The imports of each folder from others."""
        packages = {module.name: module.package for module in self.modules}
        arrows: dict[str, set[str]] = defaultdict(set)
        for source, targets in self.arrows.items():
            arrows[packages[source]] |= {packages[target] for target in targets} - {packages[source]}
        return arrows

    def arrows_up(self) -> list[str]:
        """Imports against the floors of pyproject.toml, its exceptions among them, or from records into their rooms."""
        contracts = tomllib.loads((self.root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
        ups = {arrow for contract in contracts for arrow in _violations(contract, self.arrows)}
        for source, targets in self.arrows.items():
            if source.rpartition(".")[0] == _RECORDS:
                ups |= {f"{source} -> {target}" for target in targets if target.count(".") > source.count(".")}
        return sorted(ups)

    def constructors(self, least_callbacks: int = 0) -> list[tuple[int, str]]:
        """The number of parameters of every class that is not a pydantic model or a row, most first."""
        classes = [
            (module.path, node)
            for module in self.modules
            if not module.name.startswith(_RECORDS)
            for node in module.classes()
            if not any(_is_model(base) for base in node.bases)
        ]
        parameters = [(_parameters(node), f"{path}:{node.name}") for path, node in classes]
        return sorted(
            ((len(types), name) for types, name in parameters if _callbacks(types) >= least_callbacks), reverse=True
        )

    def duplicates(self) -> list[str]:
        """Public names of classes that are defined more than once."""
        names = Counter(
            node.name
            for module in self.modules
            for node in module.tree.body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        )
        return [f"{name} x{count}" for name, count in sorted(names.items()) if count > 1]

    def banned(self) -> list[str]:
        """Banned identifiers, each with its number."""
        module_findings = (finding for module in self.modules for finding in findings(module.path, module.text))
        counts = Counter(finding.text for finding in module_findings if finding.rule == "identifier")
        return [f"{name} x{count}" for name, count in counts.most_common()]

    def figures(self) -> Iterator[tuple[str, str, list[str]]]:
        """Names, values, and what is counted."""
        kinds = sum((module.kinds() for module in self.modules), Counter[str]())
        lengths = [length for module in self.modules for length in module.functions()]
        yield "files", f"{len(self.modules):,}", []
        yield "lines", f"{kinds.total():,}", []
        for kind in ("code", "docstring", "comment", "blank"):
            yield f"  {kind}", f"{kinds[kind]:,}", []
        yield "functions", f"{len(lengths):,}", []
        yield "median function, lines", f"{statistics.median(lengths):g}", []
        large = [f"{module.path} {len(module.lines)}" for module in self.modules if len(module.lines) > MOST_LINES]
        yield _counted(f"files above {MOST_LINES} lines", large)
        yield _counted("circles of modules", circles(self.arrows))
        yield _counted("circles of packages", circles(self.package_arrows))
        yield _counted("arrows up", self.arrows_up())
        for label, least in (("largest constructor, parameters", 0), ("  with two callbacks or more", 2)):
            wide = self.constructors(least) or [(0, "")]
            yield label, str(wide[0][0]), [f"{name} {count}" for count, name in wide[:10]]
        yield _counted("public class names with duplicates", self.duplicates())
        words = self.banned()
        yield "banned identifiers", str(sum(int(word.rpartition("x")[2]) for word in words)), words


def _counted(name: str, members: list[str]) -> tuple[str, str, list[str]]:
    return name, str(len(members)), members


def _is_model(base: ast.expr) -> bool:
    return bool(re.search(r"(Model|Section|Parameters|Retriever|NamedTuple|Protocol|Enum)\b", ast.unparse(base)))


def _parameters(node: ast.ClassDef) -> list[str]:
    """The types of the parameters of a constructor, its own or a dataclass's."""
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            arguments = [*member.args.posonlyargs, *member.args.args, *member.args.kwonlyargs][1:]
            return [ast.unparse(argument.annotation) if argument.annotation else "" for argument in arguments]
    fields = [member for member in node.body if isinstance(member, ast.AnnAssign)]
    texts = [(ast.unparse(member), ast.unparse(member.annotation)) for member in fields]
    return [annotation for text, annotation in texts if not re.search(r"ClassVar|init=False", text)]


def _callbacks(types: Sequence[str]) -> int:
    return sum("Callable" in annotation for annotation in types)


def _violations(contract: Mapping[str, object], arrows: Arrows) -> Iterator[str]:
    if contract["type"] != "layers":
        return
    for container in contract.get("containers", [""]):  # type: ignore[attr-defined]
        floors: dict[str, int] = {}
        for floor, layer in enumerate(reversed(contract["layers"])):  # type: ignore[call-overload]
            prefix = f"{container}." if container else ""
            floors |= {prefix + name.strip(" ()"): floor for name in layer.split("|")}
        for source, targets in arrows.items():
            for target in targets:
                one, other = _floor(source, floors), _floor(target, floors)
                if one and other and one != other and floors[other] >= floors[one]:
                    yield f"{source} -> {target}"


def _floor(name: str, floors: Mapping[str, int]) -> str | None:
    return next((prefix for prefix in floors if name == prefix or name.startswith(f"{prefix}.")), None)


def circles(arrows: Arrows) -> list[str]:
    """The strongly connected components of more than one node (Tarjan), the largest first."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(arrows.get(node, ())):
            if target not in index:
                visit(target)
            if target in stack:
                low[node] = min(low[node], low[target])
        if low[node] == index[node]:
            place = stack.index(node)
            components.append(stack[place:])
            del stack[place:]

    sys.setrecursionlimit(10_000)
    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return [" <-> ".join(sorted(part)) for part in sorted(components, key=len, reverse=True) if len(part) > 1]


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    names = "--names" in arguments
    roots = [Path(path) for path in arguments if path != "--names"] or [Path(__file__).parents[2]]
    columns = [list(Shape(root.resolve()).figures()) for root in roots]
    width = max(12, *(len(str(root)) for root in roots)) + 2
    print(f"{'':36}" + "".join(f"{root!s:>{width}}" for root in roots))
    for row in zip(*columns, strict=True):
        print(f"{row[0][0]:36}" + "".join(f"{value:>{width}}" for _, value, _ in row))
        for root, (_, _, members) in zip(roots, row, strict=True):
            for member in members if names else ():
                print(f"    {root}: {member}")


if __name__ == "__main__":
    main(sys.argv[1:])
