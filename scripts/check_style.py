"""What keeps code plain and can be counted, but for which ruff has no rule. Needs nothing but Python.

``python scripts/check_style.py PATH...`` names packed assignments, comprehensions and conditions taken apart into names
(not in tests), text or a list times a condition, a condition as the index of a literal, a ``for`` over one element,
comprehensions with three ``for``, and layout kept by hand.
``--docstrings`` looks instead at public methods and fields (ruff's D1 asks for those of modules, classes and
functions), at docstrings that say nothing beyond their name and signature, at those that begin with what is raised
where a function does more than check, and at names in docstrings and comments that name nothing. Prints FILE:LINE:
MESSAGE; exits 1 if there is any.
"""

import argparse
import ast
import builtins
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CONDITION_CALLS = {"all", "any", "bool", "callable", "hasattr", "isinstance", "issubclass"}
CONDITION_METHODS = {"endswith", "exists", "is_dir", "is_file", "isdigit", "isspace", "issubset", "startswith"}

GUARDS = ("check", "refuse")  # how names of functions begin that only raise
# Bases and decorators whose annotated names are the fields of a model.
MODEL_BASES = {"BaseModel", "NamedTuple", "TypedDict", "Protocol"}
MODEL_DECORATORS = {"dataclass", "dataclass_transform"}
# :func:`name`, :class:`~package.module.Name`, :meth:`text <name>`; and ``package.module.name``.
REFERENCE = re.compile(r":(?:func|class|mod|meth|data|attr):`(?:[^`<]*<)?~?([\w.]+)>?`|``(\w+(?:\.\w+)+)``")
# Words that say nothing about a thing.
FILLERS = {
    *("a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "given", "has", "have", "in", "into", "is", "it"),
    *("its", "of", "on", "or", "that", "the", "their", "this", "to", "with", "all", "any", "each", "every", "return"),
    *("returns", "get", "gets", "set", "sets", "make", "makes", "value", "values", "object", "class", "function"),
}


class Finding(NamedTuple):
    """One place that is to be written otherwise."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="files, or folders with all files below")
    parser.add_argument("--docstrings", action="store_true", help="look at docstrings, and at nothing else")
    given = parser.parse_args(arguments)
    paths = python_files(given.paths)
    if given.docstrings:
        findings = list(docstrings({path: ast.parse(path.read_bytes()) for path in paths}))
    else:
        findings = [finding for path in paths for finding in style(path, ast.parse(path.read_bytes()))]
    print(*findings, sep="\n", end="\n" if findings else "")
    return 1 if findings else 0


def python_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The Python files that ``paths`` are or hold, sorted within each folder."""
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob("*.py"))
        else:
            yield path


def style(path: Path, tree: ast.Module) -> Iterator[Finding]:
    """What is not plain in one file, by line."""
    nodes = list(ast.walk(tree))
    found = [(line, message) for node in nodes for line, message in _shapes(node)]
    if "tests" not in path.parts:  # a test may take apart what it compares
        found += [(line, message) for node in nodes for line, message in _taken_apart(node)]
    found += _layout(path)
    for line, message in sorted(found):
        yield Finding(path, line, message)


def _shapes(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Assign(targets=targets, value=ast.Tuple() | ast.List() as value) if any(
            isinstance(target, ast.Tuple | ast.List) and not _needs_one_step(target, value) for target in targets
        ):
            yield node.lineno, "several assignments packed into one: write one a line"
        case ast.BinOp(op=ast.Mult(), left=left, right=right) if (_is_text(left) and _is_condition(right)) or (
            _is_text(right) and _is_condition(left)
        ):
            yield node.lineno, "text or a list times a condition: write `if`"
        case ast.Subscript(value=value, slice=index) if _is_literal(value) and _is_condition(index):
            yield node.lineno, "a condition as the index of a literal: write `if`"
        case ast.For(iter=iterable) | ast.AsyncFor(iter=iterable) if _has_one_element(iterable):
            yield node.lineno, "a loop over one element: assign it"
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            if len(node.generators) > 2:
                yield node.lineno, "a comprehension with three `for`: write a loop, or a function"
            if any(_has_one_element(generator.iter) for generator in node.generators):
                yield node.lineno, "a `for` over one element as an assignment: write a loop, or `:=`"


def _taken_apart(node: ast.AST) -> Iterator[tuple[int, str]]:
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=[_, _, *_])], value=ast.GeneratorExp() | ast.ListComp()):
            yield node.lineno, "a comprehension taken apart into names: write a line for each"
        case ast.Assign(targets=[ast.Tuple(elts=[_, _, *_])], value=ast.IfExp()):
            yield node.lineno, "a condition's values taken apart into names: write `if`"


def _needs_one_step(target: ast.Tuple | ast.List, value: ast.Tuple | ast.List) -> bool:
    """Whether some value reads what a target of the same assignment writes, as ``a, b = b, a + b`` does."""
    written = {ast.unparse(element) for element in target.elts}
    return any(ast.unparse(part) in written for part in ast.walk(value) if isinstance(part, ast.expr))


def _is_condition(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=True | False):
            return True
        case ast.BoolOp(values=values):
            return all(_is_condition(value) for value in values)
        case ast.Call(func=ast.Name(id=name)):
            return name in CONDITION_CALLS
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in CONDITION_METHODS
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.startswith(("is_", "has_", "are_", "may_"))
    return False


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.JoinedStr() | ast.List() | ast.Tuple() | ast.Constant(value=str() | bytes()):
            return True
    return False


def _is_literal(node: ast.expr) -> bool:
    return _is_text(node) or isinstance(node, ast.Dict)


def _has_one_element(node: ast.expr) -> bool:
    match node:
        case ast.List(elts=[element]) | ast.Tuple(elts=[element]) | ast.Set(elts=[element]):
            return not isinstance(element, ast.Starred)
    return False


def _layout(path: Path) -> list[tuple[int, str]]:
    if b"fmt:" not in path.read_bytes():
        return []
    with tokenize.open(path) as file:
        comments = [token for token in tokenize.generate_tokens(file.readline) if token.type == tokenize.COMMENT]
    return [
        (token.start[0], "layout kept by hand: let the formatter set it")
        for token in comments
        if re.search(r"#\s*fmt:\s*(skip|off)", token.string)
    ]


def docstrings(trees: dict[Path, ast.Module]) -> Iterator[Finding]:
    """Public methods and fields without a docstring, and docstrings whose words all stand in name and signature.

    A method has the docstring of the method that it overrides, if a class of that name with such a method is among
    ``trees``. A field's stands below it, or in the class's where that names it in double backticks.
    """
    classes = {node.name: node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    names = {module_name(path): _names(tree) for path, tree in trees.items()}
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, FUNCTIONS) and not node.name.startswith("_"):
                yield from _restated(path, node, [])
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield from _class_docstrings(path, node, classes)
        yield from _errors_alone(path, tree)
        yield from _dead_references(path, names)


def _errors_alone(path: Path, tree: ast.Module) -> Iterator[Finding]:
    """Functions whose docstring begins with what they raise, but for guards: these check or refuse, and return
    nothing."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS) and re.match(r"Raises?\b", ast.get_docstring(node) or ""):
            is_named_so = node.name.lstrip("_").startswith(GUARDS)
            returns_nothing = node.returns is None or ast.unparse(node.returns) in ("None", "NoReturn")
            if not (is_named_so and returns_nothing):
                yield Finding(
                    path, node.lineno, f"the docstring of {node.name} says what is raised before what it does"
                )


def module_name(path: Path) -> str:
    """The dotted name by which the file at ``path`` is imported: its package is the folders that have ``__init__.py``.

    >>> module_name(Path("judging/scores/score.py"))
    'judging.scores.score'
    """
    parts = [] if path.name == "__init__.py" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


def _names(tree: ast.Module) -> dict[str, str | None]:
    """The names that a module defines, "Class.member" among them; with what another module has, if it is imported."""
    imported: dict[str, str | None] = {}
    defined: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=module, names=aliases):
                imported |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in aliases}
            case ast.Import(names=aliases):
                imported |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in aliases}
            case ast.ClassDef(name=name):
                defined += [name, *(f"{name}.{member}" for member in _members(node))]
            case ast.Assign() | ast.AnnAssign():
                defined += [name.id for name in ast.walk(node) if isinstance(name, ast.Name)]
    defined += [node.name for node in tree.body if isinstance(node, FUNCTIONS)]
    return dict.fromkeys(defined) | imported


def _members(node: ast.ClassDef) -> Iterator[str]:
    """Methods, fields, and what methods assign to ``self``."""
    for part in ast.walk(node):
        match part:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def _dead_references(path: Path, names: dict[str, dict[str, str | None]]) -> Iterator[Finding]:
    packages = {module.partition(".")[0] for module in names}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        for role, dotted in REFERENCE.findall(line):
            reference = role or dotted
            is_ours = reference.partition(".")[0] in packages
            if dotted and not is_ours:
                continue  # a file, or a setting
            if is_ours:
                is_there = _is_in_some_module(reference, names)
            else:
                here = module_name(path)
                is_member = any(name.endswith(f".{reference}") for name in names[here])
                is_there = is_member or _is_there(reference, here, names)
            if not is_there:
                yield Finding(path, number, f"nothing is named {reference}")


def _is_in_some_module(reference: str, names: dict[str, dict[str, str | None]]) -> bool:
    """Whether ``reference``, with the name of its package, is a module or has one's name before that of a thing."""
    module = reference
    rest = ""
    while module and module not in names:
        module, _, last = module.rpartition(".")
        rest = f"{last}.{rest}" if rest else last
    return bool(module) and (not rest or _is_there(rest, module, names))


def _is_there(reference: str, module: str, names: dict[str, dict[str, str | None]]) -> bool:
    """Whether ``module`` has a thing of that name, or imports it from where it is."""
    known = names[module]
    first, _, rest = reference.partition(".")
    source = known.get(first)
    if source is not None:
        is_ours = source.partition(".")[0] in {name.partition(".")[0] for name in names}
        return not is_ours or _is_in_some_module(f"{source}.{rest}" if rest else source, names)
    return reference in known or hasattr(builtins, first)


def _class_docstrings(path: Path, node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[Finding]:
    fields = [field for field in node.body if isinstance(field, ast.AnnAssign)] if _is_model(node, classes) else []
    yield from _restated(path, node, [ast.unparse(field) for field in fields])
    for method in node.body:
        if isinstance(method, FUNCTIONS) and not method.name.startswith("_"):
            if ast.get_docstring(method) is None and not _is_override(method, node, classes):
                yield Finding(path, method.lineno, f"{node.name}.{method.name} has no docstring")
            yield from _restated(path, method, [node.name])
    for field in fields:
        name = ast.unparse(field.target)
        text = _field_docstring(node, field)
        if name.startswith("_") or name == "model_config":
            continue
        if text is None:
            if f"``{name}``" not in (ast.get_docstring(node) or ""):
                yield Finding(path, field.lineno, f"{node.name}.{name} has no docstring")
        elif words(text) <= words(f"{name} {ast.unparse(field.annotation)} {node.name}"):
            yield Finding(path, field.lineno, f"the docstring of {node.name}.{name} says no more than its name")


def _restated(
    path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, context: list[str]
) -> Iterator[Finding]:
    text = ast.get_docstring(node)
    if text is None:
        return
    if isinstance(node, ast.ClassDef):
        signature = " ".join([node.name, *map(ast.unparse, node.bases), *context])
    else:
        returns = "" if node.returns is None else ast.unparse(node.returns)
        signature = " ".join([node.name, ast.unparse(node.args), returns, *context])
    if words(text) <= words(signature):
        yield Finding(path, node.lineno, f"the docstring of {node.name} says no more than its name and signature")


def words(text: str) -> set[str]:
    """The stems of the words of ``text`` but for fillers: "pathsRead_by" has "path" and "read"."""
    parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", text)]
    return {re.sub(r"(?<=[a-z]{3})(s|es|ed|ing|e)$", "", part) for part in parts if part not in FILLERS}


def _is_model(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    decorators = {_last_name(item) for item in node.decorator_list}
    return bool(decorators & MODEL_DECORATORS) or any(
        base in MODEL_BASES or (base in classes and classes[base] is not node and _is_model(classes[base], classes))
        for base in map(_last_name, node.bases)
    )


def _is_override(
    method: ast.FunctionDef | ast.AsyncFunctionDef, node: ast.ClassDef, classes: dict[str, ast.ClassDef]
) -> bool:
    if any(_last_name(item) in {"override", "setter", "overload"} for item in method.decorator_list):
        return True
    bases = [classes[name] for name in map(_last_name, node.bases) if name in classes and classes[name] is not node]
    for base in bases:
        for inherited in base.body:
            if isinstance(inherited, FUNCTIONS) and inherited.name == method.name and ast.get_docstring(inherited):
                return True
        if _is_override(method, base, classes):
            return True
    return False


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=called) | ast.Subscript(value=called):
            return _last_name(called)
    return ""


def _field_docstring(node: ast.ClassDef, field: ast.AnnAssign) -> str | None:
    after = node.body[node.body.index(field) + 1 :]
    match after:
        case [ast.Expr(value=ast.Constant(value=str() as text)), *_]:
            return text
    return None


if __name__ == "__main__":
    sys.exit(main())
