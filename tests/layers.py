"""The layers of the package, and what imports what: read from the sources, for tests and the design page."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "corank"

# Parts of the package from the bottom up: a part may import parts of its own layer or of a lower one.
LAYERS: list[tuple[str, ...]] = [
    ("errors", "system", "notebook"),
    ("params", "kernels", "nn"),
    ("data",),
    ("reading", "graph", "cost", "nlp"),
    ("model_file", "stored", "settings", "answering"),
    ("evaluation",),
    ("checkpoint", "training", "estimate", "model"),
    ("models",),
    ("cluster",),
    ("datasets", "export"),
    ("report",),
    ("experiment",),
    ("serve",),
    ("cli", "__main__"),
]
METHODS = ("models", "kernels", "nn", "graph")  # folders that hold methods
LEVEL = {part: level for level, parts in enumerate(LAYERS) for part in parts}

# Imports that point up, inside a function, where a lower part offers the work of a higher one as a method.
UPWARD = {
    ("data.graph_alignment", "reading.edge_tables"): "Dataset.with_graph takes the path of an edge list",
}


@dataclass
class Module:
    """A file of the package: the modules that it imports, those inside functions too; types alone do not count."""

    name: str
    path: Path
    imports: set[str] = field(default_factory=set)
    eager: set[str] = field(default_factory=set)  # of these, the imports at the top of the file
    lines: int = 0

    @property
    def part(self) -> str:
        return self.name.split(".")[0]


@functools.cache  # the files of one process do not change
def modules() -> dict[str, Module]:
    """All modules by their name within the package, e.g. 'data.split'; a package has the name of its folder."""
    found: dict[str, Module] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            found[name] = Module(name, path)
    for module in found.values():
        tree = ast.parse(module.path.read_text("utf-8"))
        module.lines = module.path.read_text("utf-8").count("\n")
        package = list(module.path.relative_to(SOURCE).parts[:-1])
        for node in _imports(tree):
            base = package[: len(package) + 1 - node.level]
            target = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{target}.{alias.name}".lstrip(".")
                other = inner if inner in found else target
                if other in found and other != module.name:
                    names = [alias.name] if node.module else _attributes(tree, alias.asname or alias.name)
                    home = _lazily_resolved(found[other].path)
                    reached = {other, *(f"{other}.{home[name]}" for name in names if name in home)}
                    module.imports |= reached
                    module.eager |= reached if node in tree.body else set()
    return found


def _imports(tree: ast.AST) -> list[ast.ImportFrom]:
    """The relative imports of a file, those under `if TYPE_CHECKING` left out."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            waiting += node.orelse
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            found.append(node)
        waiting += ast.iter_child_nodes(node)
    return found


def _attributes(tree: ast.AST, name: str) -> list[str]:
    """What a file takes from the module that it calls `name`: nn.Trainer, nn.dropout, ..."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)]
    return [node.attr for node in nodes if node.value.id == name]


@functools.cache
def _lazily_resolved(path: Path) -> dict[str, str]:
    """name -> module of the names that a package resolves on first use: its table `HOME` (`nn`)."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "HOME":
            return dict(ast.literal_eval(node.value))
    return {}


def closure(start: str, all_modules: dict[str, Module], *, facades: bool = True) -> set[str]:
    """A module and all that it imports, directly or not.

    Without facades, imports inside functions count for methods only: in the contract and the data types they hand over
    to another part (`Dataset.describe`, validation in `fit`), which a reader of a model need not open.
    """
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            module = all_modules[name]
            waiting += module.imports if facades or module.part in METHODS else module.eager
    return reached
