"""The layers of the package, and what imports what: read from the sources, for tests and the design page."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "corank"

# Parts of the package from the bottom up: a part may import parts of its own layer or of a lower one.
LAYERS: list[tuple[str, ...]] = [
    ("errors", "atomic", "memory"),
    ("params", "kernels", "nn"),
    ("data",),
    ("reading", "graph", "ranking"),
    ("model_file", "answering"),
    ("evaluation",),
    ("checkpoint", "training", "model"),
    ("models",),
    ("datasets",),
    ("report",),
    ("experiment",),
    ("cli", "__main__"),
]
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
    lines: int = 0

    @property
    def part(self) -> str:
        return self.name.split(".")[0]


def modules() -> dict[str, Module]:
    """All modules by their name within the package, e.g. 'data.split'; a package has the name of its folder."""
    found: dict[str, Module] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name:
            found[name] = Module(name, path)
    for module in found.values():
        text = module.path.read_text("utf-8")
        module.lines = text.count("\n")
        package = list(module.path.relative_to(SOURCE).parts[:-1])
        for node in _imports(ast.parse(text)):
            base = package[: len(package) + 1 - node.level]
            target = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{target}.{alias.name}".lstrip(".")
                if inner in found:
                    module.imports.add(inner)
                elif target in found:
                    module.imports.add(target)
        module.imports.discard(module.name)
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


def closure(start: str, all_modules: dict[str, Module]) -> set[str]:
    """A module and all that it imports, directly or not."""
    reached, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += all_modules[name].imports
    return reached
