"""Mutants of a module: copies with one small change each, such as a programmer makes by mistake."""

import ast
import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

# Not part of what a module does at run time: types, decorators and base classes.
_SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "bases", "type_params"}
_OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Continue: ast.Break, ast.Break: ast.Continue,
}  # fmt: skip
NOTE = "__note_line__"
_FUNCTIONS = {"max": "min", "min": "max", "any": "all", "all": "any", "maximum": "minimum", "minimum": "maximum"}


@dataclass(frozen=True)
class Mutant:
    """A module with one change.

    Attributes:
        lines: lines of the changed statement; of a compound statement, those above its body.
        change: the old code and the new code.
        source: source of the whole module.
        code: code of the whole module, with the line numbers of the original.
    """

    lines: range
    change: str
    source: str
    code: CodeType


@dataclass(frozen=True)
class _Change:
    """A replacement of one child of a node, and the statement that it lies in."""

    statement: ast.stmt
    put: Callable[[ast.AST], None]
    old: ast.AST
    new: ast.AST

    def mutant(self, tree: ast.Module) -> Mutant:
        """The module with this change; the tree is afterwards what it was before."""
        before = _first_line(self.statement)
        self.put(self.new)
        now = self.new if self.old is self.statement else self.statement
        change = f"{before}  →  {_first_line(now)}"
        code = compile(ast.fix_missing_locations(tree), "<mutant>", "exec")
        mutant = Mutant(_own_lines(self.statement), change, ast.unparse(tree), code)
        self.put(self.old)
        return mutant


def replaced(path: Path, old: str, new: str, what: str) -> Mutant:
    """The module with one text in the place of another, which it holds once; `what` says what that does."""
    before = path.read_text(encoding="utf-8")
    if before.count(old) != 1:
        raise ValueError(f"{path} holds this {before.count(old)} times, not once: {old}")
    line = before[: before.index(old)].count("\n") + 1
    after = before.replace(old, new)
    lines = range(line, line + 1)
    return Mutant(lines, what, after, compile(after, "<mutant>", "exec"))


def mutants(path: Path, count: int, seed: int, same: Collection[str] = ()) -> list[Mutant]:
    """A sample of the mutants of a module, in the order of its lines; the same for the same seed.

    Args:
        same: changes that are left out, since the module does the same with them.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    changes = [change for child in tree.body for change in _changes(tree.body, tree.body.index(child), child)]
    chosen = random.Random(f"{seed} {path.name} {len(changes)}").sample(changes, min(count, len(changes)))
    mutations = (change.mutant(tree) for change in chosen)
    return sorted((mutant for mutant in mutations if mutant.change not in same), key=lambda mutant: mutant.lines.start)


def noting(path: Path) -> CodeType:
    """The module with a call of NOTE, with the number of the line, before each statement of a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bodies = [
        body
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
        if isinstance(body, list)
    ]
    for body in {id(body): body for body in bodies}.values():  # those of functions in functions once
        body[:] = [new for statement in body for new in (_note(statement), statement)]
    return compile(ast.fix_missing_locations(tree), "<mutant>", "exec")


def _note(statement: ast.stmt) -> ast.stmt:
    called = ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(statement.lineno)], [])
    return ast.copy_location(ast.Expr(called), statement)


def _changes(siblings: list[ast.stmt], place: int, statement: ast.stmt) -> Iterator[_Change]:
    """All changes in a statement, and in those that it holds."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return
    if _can_be_left_out(statement):
        yield _Change(statement, lambda new: siblings.__setitem__(place, new), statement, ast.Pass())  # type: ignore[call-overload]  # a statement, as is what it replaces
    yield from _changes_below(statement, statement)


def _changes_below(statement: ast.stmt, node: ast.AST) -> Iterator[_Change]:
    for name, value in ast.iter_fields(node):
        if (
            name in _SKIPPED_FIELDS
            or (isinstance(node, ast.keyword) and node.arg == "strict")
            or (name == "keywords" and isinstance(node, ast.ClassDef))
        ):
            continue
        children = value if isinstance(value, list) else [value]
        for place, child in enumerate(children):
            if isinstance(child, ast.stmt):
                yield from _changes(value, place, child)
            if not isinstance(child, ast.AST):
                continue

            def put(new: ast.AST, value: object = value, name: str = name, place: int = place) -> None:
                value.__setitem__(place, new) if isinstance(value, list) else setattr(node, name, new)

            for new in _replacements(node, name, child):
                yield _Change(child if isinstance(child, ast.stmt) else statement, put, child, new)
            if not isinstance(child, ast.stmt):
                yield from _changes_below(statement, child)


def _replacements(parent: ast.AST, name: str, node: ast.AST) -> Iterator[ast.AST]:
    """Replacements of a node."""
    if type(node) in _OPERATORS:
        yield _OPERATORS[type(node)]()
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Name(id=called) if called in _FUNCTIONS and name == "func":
            yield ast.Name(_FUNCTIONS[called], ast.Load())
        case ast.Attribute(value=owner, attr=called) if called in _FUNCTIONS and name == "func":
            yield ast.Attribute(owner, _FUNCTIONS[called], ast.Load())
        case ast.Call(keywords=[*_, ast.keyword(arg=str(last))] as keywords) if last != "strict":
            yield ast.Call(node.func, node.args, keywords[:-1])
    if name == "test" and isinstance(parent, ast.If | ast.IfExp | ast.While) and isinstance(node, ast.expr):
        yield ast.UnaryOp(ast.Not(), node)


def _can_be_left_out(statement: ast.stmt) -> bool:
    """A call, raise or assignment in place; not a docstring."""
    docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Expr | ast.Raise | ast.AugAssign | ast.Delete) and not docstring


def _own_lines(statement: ast.stmt) -> range:
    """The lines of a statement without those of the statements that it holds."""
    inner = [child.lineno for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]
    end = min(inner, default=(statement.end_lineno or statement.lineno) + 1)
    return range(statement.lineno, max(end, statement.lineno + 1))


def _first_line(statement: ast.AST) -> str:
    return ast.unparse(statement).split("\n", 1)[0]
