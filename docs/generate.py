"""Writes what the pages, the navigation and the type stub say about the sources, so that nobody keeps it up by hand.

    python docs/generate.py            writes (`make generate`)
    python docs/generate.py --check    names the first file that is stale, and fails

A file that is generated in part has marked places, `generated: NAME` ... `end` in comments; the rest of it is prose.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(ROOT / "docs")]

import api  # noqa: E402
import dissertation  # noqa: E402
import pictures  # noqa: E402

import corank  # noqa: E402
from corank.experiment import schema, stated  # noqa: E402
from corank.stored import COMMON, Stored  # noqa: E402
from layers import LAYERS, UPWARD, Module, closure, modules  # noqa: E402

SOURCE = ROOT / "src" / "corank"
DOCS = ROOT / "docs"


# ---- models ------------------------------------------------------------------------------------------------------


def model_names() -> list[str]:
    """Models by what they learn from, the simplest kind of data first."""
    return sorted(corank.available(), key=lambda name: (_kind(corank.find(name)), name))


def _kind(cls: type[corank.Model]) -> int:
    if cls.order_matters:
        return 1
    explicit = cls.needs_ratings or cls.predicts_ratings
    return 2 * explicit + 3 * (cls.graph == "needed")


def learns_from(cls: type[corank.Model]) -> str:
    """What a model learns from, by what its class declares."""
    if cls.order_matters:
        source = "interactions in time order"
    elif cls.takes_comparisons:
        source = "ratings or comparisons"
    elif cls.needs_ratings or cls.predicts_ratings:
        source = "ratings"
    elif "explicit" in cls.task_params:
        source = "interactions or ratings"
    else:
        source = "interactions"
    return source + {"unused": "", "optional": ", optionally a graph", "needed": " and a graph"}[cls.graph]


def extra(name: str, known: dict[str, Module]) -> str:
    """The optional dependency that a model needs: torch, where its own modules import it."""
    reached = (known[one] for one in closure(f"models.{name}", known) if one.split(".")[0] in ("models", "nn"))
    torch = re.compile(r"^\s*(import|from) torch\b", re.MULTILINE)
    return "nn" if any(torch.search(one.path.read_text("utf-8")) for one in reached) else ""


def page(name: str) -> Path:
    """The page of a model."""
    return DOCS / f"{name.replace('_', '-')}.md"


def models_table() -> str:
    known = modules()
    lines = ["| name | class | what it is | learns from | extra |", "|---|---|---|---|---|"]
    for name in model_names():
        cls = corank.find(name)
        needs = extra(name, known)
        shown = f"[`{cls.__name__}`]({page(name).name})"
        cells = [f"`{name}`", shown, _escaped(summary(inspect.getdoc(cls) or "")), learns_from(cls)]
        lines.append(f"| {' | '.join(cells)} | {f'`{needs}`' if needs else ''} |")
    return "\n".join(lines)


def stored_tables() -> str:
    """What the file of each model holds, as the models declare it."""
    lines = ["| attribute | every model |", "|---|---|", *_stored_rows(COMMON)]
    for name in model_names():
        model = corank.find(name)()
        model.items_ = ()  # declarations of some models depend on whether the catalogue is small
        own = {key: rule for key, rule in model._stores().items() if key not in COMMON}
        lines += ["", f"| attribute | `{name}` |", "|---|---|", *_stored_rows(own)]
    return "\n".join(lines)


def _stored_rows(rules: Mapping[str, Stored]) -> list[str]:
    return [f"| `{key}` | {_escaped(rule.words())} |" for key, rule in rules.items()]


def summary(doc: str) -> str:
    """The first paragraph of a docstring, as one line without its full stop."""
    return " ".join(doc.strip().split("\n\n")[0].split()).removesuffix(".")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


# ---- navigation --------------------------------------------------------------------------------------------------


def heading(path: Path) -> str:
    """The first heading of a page."""
    return next(line[2:].strip() for line in path.read_text("utf-8").splitlines() if line.startswith("# "))


def models_navigation() -> str:
    """Model pages by what the models learn from."""
    groups = {"Implicit feedback": (0,), "Sequences": (1,), "Ratings": (2,), "Graphs": (3, 5)}
    lines = []
    for title, kinds in groups.items():
        pages = [page(name) for name in model_names() if _kind(corank.find(name)) in kinds]
        lines += [f"      - {title}:", *(f"          - {_quoted(heading(path))}: {path.name}" for path in pages)]
    return "\n".join(lines)


def results_navigation() -> str:
    """Result pages under the headings of their index, in its order; pages that it does not list come last."""
    index = (DOCS / "results" / "index.md").read_text("utf-8")
    names = {p.name for p in (DOCS / "results").glob("*.md")} - {"index.md"}
    lines = []
    for part in index.split("\n## ")[1:]:
        title, rows = part.split("\n", 1)
        table = "\n".join(line for line in rows.splitlines() if line.startswith("|"))
        listed = [n for n in dict.fromkeys(re.findall(r"\]\(([\w.-]+\.md)\)", table)) if n in names]
        names -= set(listed)
        if listed:
            lines += [f"      - {_quoted(title)}:", *(f"    {_result(name, title)}" for name in listed)]
    return "\n".join([*lines, *map(_result, sorted(names))])


def _result(name: str, group: str = "") -> str:
    """An entry of the navigation; a title that begins with the group's does without it there."""
    title = result_title(name).removeprefix(f"{group}, ")
    return f"      - {_quoted(title)}: results/{name}"


def api_navigation() -> str:
    """Pages of the API reference, which exist only in the built site."""
    titles = [(group[0], f"api/{name}.md") for name, group in api.GROUPS.items()]
    return "\n".join(f"      - {_quoted(title)}: {path}" for title, path in titles)


def result_title(name: str) -> str:
    """The `title` of the experiment behind a result page, or else the page's heading."""
    experiment = (ROOT / "experiments" / name).with_suffix(".toml")
    table = tomllib.loads(experiment.read_text("utf-8")) if experiment.exists() else {}
    return str(table.get("title") or heading(DOCS / "results" / name))


def _quoted(title: str) -> str:
    return f'"{title}"' if re.search(r"[:#\"']", title) else title


# ---- experiment files --------------------------------------------------------------------------------------------


def experiment_options() -> str:
    """The keys of an experiment file, by the schema that files are checked against."""
    lines = ["| key | default | value | meaning |", "|---|---|---|---|"]
    for name, (known, default) in schema.options(corank.Experiment).items():
        key = "[[model]]" if name == "models" else name
        usual = "" if default in (None, "", (), dataclasses.MISSING) else f"`{default!r}`"
        usual = {"`True`": "`true`", "`False`": "`false`"}.get(usual, usual)
        lines.append(f"| `{key}` | {usual} | {_escaped(known.kind.words)} | {_escaped(known.doc)} |")
    return "\n".join(lines)


def experiment_rows() -> str:
    lines = ["| key | value | meaning |", "|---|---|---|"]
    for name, (kind, doc) in schema.ROW.items():
        words = "the name of a model" if name == "name" else kind.words
        lines.append(f"| `{name}` | {words} | {doc} |")
    return "\n".join(lines)


def experiment_tables() -> str:
    """The options of the splits and of `columns`."""
    lines = ["| table | key | value |", "|---|---|---|"]
    splits = {**schema.OWN_SPLITS, **schema.SPLITS}
    tables = {f"split `{name}`": kinds for name, kinds in splits.items()} | {"`columns`": schema.COLUMNS}
    tables |= {"`chosen`": stated.CHOSEN_KEYS, "`published_under`": stated.UNDER_KEYS}
    for table, kinds in tables.items():
        lines += [f"| {table} | `{key}` | {_escaped(kind.words)} |" for key, kind in kinds.items()]
        lines += [] if kinds else [f"| {table} | | no options |"]
    return "\n".join(lines)


# ---- design page -------------------------------------------------------------------------------------------------


def tree() -> str:
    """Every file of the package with the summary of its docstring."""
    files = sorted(SOURCE.glob("*.py")) + sorted(SOURCE.glob("*/*.py"))
    rows: list[tuple[str, str]] = [("src/corank/", "")]
    rows += [(f"  {path.name}", summary(_docstring(path))) for path in files if path.parent == SOURCE]
    for folder in sorted({path.parent for path in files} - {SOURCE}):
        rows.append((f"  {folder.name}/", summary(_docstring(folder / "__init__.py"))))
        inside = [path for path in files if path.parent == folder and path.name != "__init__.py"]
        rows += [(f"    {path.name}", summary(_docstring(path))) for path in inside]
    width = max(len(name) for name, _ in rows) + 2
    return "```text\n" + "\n".join(f"{name:<{width}}{text}".rstrip() for name, text in rows) + "\n```"


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""


def layers() -> str:
    """The layers from the top down, and the imports that are allowed to point up."""
    lines = ["```text", *("  ".join(parts) for parts in reversed(LAYERS)), "```"]
    if UPWARD:
        lines += ["", "Exceptions, each inside a function:", ""]
        lines += [f"- `{name}` imports `{other}`: {why}." for (name, other), why in UPWARD.items()]
    return "\n".join(lines)


# ---- type stub ---------------------------------------------------------------------------------------------------


def stub() -> str:
    """`corank/__init__.pyi`: the public names, which Python resolves on first use, for editors and mypy."""
    lines = [f"from .{module} import {name} as {name}" for module, names in corank._NAMES.items() for name in names]
    aliases = []
    for name, module in corank._MODULES.items():
        package, _, last = module.rpartition(".")
        public = name if last == name else f"_{name}"  # only `x as x` is public in a stub
        lines.append(f"from .{package} import {last} as {public}")
        aliases += [] if last == name else [f"{name} = _{name}"]
    lines += [f"from .models.{name} import {_class(name)} as {_class(name)}" for name in corank.available()]
    lines.sort(key=lambda line: (line.split()[1], line.split()[-1]))
    head = "# Written by docs/generate.py from __init__.py and the models folder: `make generate`."
    return "\n".join([head, *lines, "", *aliases, "__version__: str", "__all__: list[str]", ""])


def _class(name: str) -> str:
    return corank.find(name).__name__


# ---- writing -----------------------------------------------------------------------------------------------------

PLACES = {
    "docs/models.md": {"models": models_table},
    "docs/model-files.md": {"stored": stored_tables},
    "docs/experiments.md": {"options": experiment_options, "rows": experiment_rows, "tables": experiment_tables},
    "mkdocs.yml": {"models": models_navigation, "results": results_navigation, "api": api_navigation},
    "docs/design.md": {"tree": tree, "layers": layers},
    **{
        f"docs/{page(name).name}": {"parameters": partial(api.parameters_table, corank.find(name))}
        for name in corank.available()
    },
}
FILES = {
    "src/corank/__init__.pyi": stub,
    "docs/rooms.svg": pictures.rooms,
    "docs/interaction.svg": pictures.interaction,
    "docs/coverage.md": dissertation.text,
}


def contents() -> dict[Path, str]:
    """What each generated file should hold."""
    for name in corank.available():
        if not page(name).exists():
            raise SystemExit(f"docs/{page(name).name} is missing: every model has a page, see docs/adding-a-model.md")
    made = {ROOT / name: make() for name, make in FILES.items()}
    for name, places in PLACES.items():
        text = (ROOT / name).read_text("utf-8")
        for place, make in places.items():
            text = _filled(text, place, make(), name)
        made[ROOT / name] = text
    return made


def _filled(text: str, place: str, new: str, name: str) -> str:
    """`text` with `new` between the two comments of a place, in Markdown or YAML."""
    marks = rf"(^ *(?:<!--|#) generated: {place}\b[^\n]*\n).*?(^ *(?:<!--|#) end\b)"
    filled, count = re.subn(marks, lambda m: f"{m[1]}{new}\n{m[2]}", text, count=1, flags=re.MULTILINE | re.DOTALL)
    if not count:
        raise SystemExit(f"{name} has no place `generated: {place}`: add the two comments around where it belongs")
    return filled


def stale() -> list[str]:
    """Generated files that differ from what the sources say."""
    made = contents()
    return [
        str(path.relative_to(ROOT))
        for path, text in made.items()
        if not path.exists() or path.read_text("utf-8") != text
    ]


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        for name in stale():
            print(f"{name} does not match the sources: run `make generate`", file=sys.stderr)
            return 1
        return 0
    for path, text in contents().items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            print(f"{path.relative_to(ROOT)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
