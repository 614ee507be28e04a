"""The API reference: one page per group of public names, made from signatures and docstrings when the site is built.

`pages()` returns Markdown by path. The names come from `corank/__init__.py`: a new one appears without any change
here, on the page of its module, or on the last page where its module has none yet.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import docstrings

import corank
from corank.model import Model
from corank.params import ClassDoc, described

# Page: title, introduction, and the modules (of `corank._NAMES` and `corank._MODULES`) whose names it holds.
GROUPS = {
    "data": (
        "Data",
        "Tables in, datasets out.",
        ("reading.tables", "reading.frames", "reading.item_tables", "data", "data.labels"),
    ),
    "splits": ("Splits", "Training, validation and test rows as a value.", ("data.split", "data.held_out_users")),
    "models": (
        "Models",
        "What all models have in common, how they are found and loaded, and each model with its hyper-parameters. "
        "[Choosing a model](../models.md) says which one to use.",
        ("model", "models", "cluster.ray_cluster", "answering.ranking", "answering.explain", "answering.diversity"),
    ),
    "evaluation": (
        "Evaluation",
        "Metrics with intervals and tests; [Evaluation protocols](../evaluation.md) has the formulas.",
        ("evaluation.evaluate", "evaluation.report", "evaluation.significance", "evaluation.metrics"),
    ),
    "experiments": (
        "Experiments and reports",
        "Several models on one split, tuned, compared and reported.",
        ("experiment.experiment", "experiment.results", "report"),
    ),
    "datasets": (
        "Datasets",
        "Public datasets by name, and synthetic data whose ground truth is known.",
        ("datasets", "datasets.synthetic"),
    ),
    "export": (
        "Export",
        "Vectors, search indexes and networks for other systems; [Export](../export.md) has examples.",
        ("answering.vectors", "export.vectors", "export.index", "export.onnx"),
    ),
    "graphs": ("Graphs", "Edges, Graph DNA and embeddings of nodes.", ("graph", "graph.node2vec")),
    "other": ("Errors and threads", "Errors are one sentence; threads do not change results.", ("errors",)),
}
WIDTH = 92  # a longer signature gets a line per parameter


# ---- which names are on which page -------------------------------------------------------------------------------


def public() -> dict[str, list[tuple[str, Any]]]:
    """Page -> (public name, object); modules follow the names, as in `corank.graph.encode`."""
    page_of = {module: page for page, (_, _, modules) in GROUPS.items() for module in modules}
    out: dict[str, list[tuple[str, Any]]] = {page: [] for page in GROUPS}
    order = [module for _, _, modules in GROUPS.values() for module in modules]
    homes = sorted(corank._NAMES, key=lambda home: order.index(home) if home in order else len(order))
    for home in homes:
        out[page_of.get(home, "other")] += [(name, getattr(corank, name)) for name in corank._NAMES[home]]
    models = [corank.find(name) for name in corank.available()]
    out["models"] += sorted(((cls.__name__, cls) for cls in models), key=lambda pair: pair[0].lower())
    for name, home in corank._MODULES.items():
        out[page_of.get(home, "other")].append((name, getattr(corank, name)))
    return out


def members(module: ModuleType) -> list[tuple[str, Any]]:
    """The public names of a module: those of `__all__`, or what it defines itself."""
    if hasattr(module, "__all__"):
        return [(name, getattr(module, name)) for name in module.__all__]
    own = vars(module).items()
    return [(n, o) for n, o in own if not n.startswith("_") and getattr(o, "__module__", "") == module.__name__]


def targets() -> dict[str, str]:
    """Where a name that a docstring mentions is explained: name -> page#anchor."""
    out: dict[str, str] = {}
    for page, names in public().items():
        for name, thing in names:
            if isinstance(thing, ModuleType):  # not the module itself: `metrics` is an argument far more often
                out |= {f"{name}.{inner}": f"{page}.md#corank.{name}.{inner}" for inner, _ in members(thing)}
                continue
            out[name] = f"{page}.md#corank.{name}"
            if inspect.isclass(thing):
                out |= {f"{name}.{inner}": f"{page}.md#corank.{name}.{inner}" for inner, _ in methods(thing)}
    return out


# ---- pages -------------------------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """The Markdown of each page, by its path in the documentation."""
    link = docstrings.linker(targets())
    out = {"api/index.md": overview()}
    for page, names in public().items():
        title, intro, _ = GROUPS[page]
        parts = [f"# {title}", intro]
        for name, thing in names:
            parts += entry(f"corank.{name}", thing, link)
        out[f"api/{page}.md"] = "\n\n".join(filter(None, parts)) + "\n"
    return out


def overview() -> str:
    """All public names with the first sentence of their docstrings."""
    parts = [
        "# API reference",
        "`import corank as cr` gives all of these names. The pages are made from the docstrings.",
    ]
    link = docstrings.linker({})
    for page, names in public().items():
        rows = ["| name | |", "|---|---|"]
        for name, thing in names:
            rows.append(f"| [`{name}`]({page}.md#corank.{name}) | {link(docstrings.first_sentence(text_of(thing)))} |")
        parts += [f"## [{GROUPS[page][0]}]({page}.md)", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def entry(path: str, thing: Any, link: docstrings.Link) -> Iterator[str]:
    """The parts of a page that explain one public name."""
    name = path.removeprefix("corank.")
    yield f"## {name} {{ #{path} }}"
    if isinstance(thing, ModuleType):
        yield docstrings.to_markdown(text_of(thing), link)
        for inner, one in members(thing):
            yield from member(f"{path}.{inner}", f"{name}.{inner}", one, link)
            if inspect.isclass(one):
                for method, function in methods(one):
                    yield from member(f"{path}.{inner}.{method}", f"{inner}.{method}", function, link, level=4)
        return
    model = inspect.isclass(thing) and issubclass(thing, Model) and thing is not Model
    yield (
        f"```python\ncr.{name}(...)  # hyper-parameters by name, see below\n```"
        if model
        else fenced(f"cr.{name}", thing)
    )
    yield docstrings.to_markdown(text_of(thing), link)
    if inspect.isclass(thing):
        if model:
            yield f"[The page of {name}](../{thing.name().replace('_', '-')}.md) has an example, results and advice."
        yield fields(thing, link)
        for method, function in methods(thing):
            yield from member(f"{path}.{method}", f"{name}.{method}", function, link)


def member(path: str, name: str, thing: Any, link: docstrings.Link, level: int = 3) -> Iterator[str]:
    yield f"{'#' * level} {name} {{ #{path} }}"
    if not callable(thing) and not isinstance(thing, property):
        yield f"```python\n{name.rpartition('.')[2]} = {thing!r}\n```"
        return
    yield fenced(name, thing)
    yield docstrings.to_markdown(text_of(thing), link)
    if inspect.isclass(thing):
        yield fields(thing, link)


def text_of(thing: Any) -> str:
    """The docstring as written: the hyper-parameters of a model get a table instead."""
    own = vars(thing).get("__doc__") if inspect.isclass(thing) else None
    text = own.text if isinstance(own, ClassDoc) else getattr(thing, "__doc__", None) or ""
    made = dataclasses.is_dataclass(thing) and text.startswith(f"{thing.__name__}(")  # dataclasses writes a signature
    return "" if made else inspect.cleandoc(text)


def methods(cls: type) -> list[tuple[str, Any]]:
    """Public methods and properties that a class defines; those of `Model` are explained there."""
    bases = [
        base for base in cls.__mro__ if base.__module__.startswith("corank.") and (base is cls or base is not Model)
    ]
    found: dict[str, Any] = {}
    for base in bases:
        for name, thing in vars(base).items():
            if name.startswith("_") or name in found:
                continue
            plain = thing.__func__ if isinstance(thing, classmethod | staticmethod) else thing
            if inspect.isfunction(plain) or isinstance(thing, property):
                found[name] = plain
    return list(found.items())


# ---- signatures and fields ---------------------------------------------------------------------------------------


def fenced(name: str, thing: Any) -> str:
    return f"```python\n{signature(name, thing)}\n```"


def signature(name: str, thing: Any) -> str:
    """A call as it is written, on one line or with a line per parameter."""
    if isinstance(thing, property):
        return f"{name}: {inspect.signature(thing.fget).return_annotation}"
    try:
        call = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    listed = [p for p in call.parameters.values() if p.name not in ("self", "cls") and not p.name.startswith("_")]
    if inspect.isclass(thing):
        call = call.replace(return_annotation=inspect.Signature.empty)
        if any(p.kind is p.VAR_POSITIONAL for p in listed):  # exceptions
            return name
    returns = "" if call.return_annotation is call.empty else f" -> {_plain(call.return_annotation)}"
    words, starred = [], False
    for one in listed:
        if one.kind is one.KEYWORD_ONLY and not starred:
            words.append("*")
        starred |= one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        words.append(_plain(one))
    line = f"{name}({', '.join(words)}){returns}"
    return line if len(line) <= WIDTH else f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){returns}"


def _plain(thing: Any) -> str:
    """Annotations are strings here and lose their quotes; a default that is made by a factory is shown as `...`."""
    text = re.sub(r"""(?<=: )(?:'([^']*)'|"([^"]*)"|ForwardRef\('([^']*)'\))""", _unquoted, str(thing))
    return re.sub(r"<factory>|<[^<>]* object at 0x[0-9a-f]+>", "...", text)


def _unquoted(found: re.Match[str]) -> str:
    return found[1] or found[2] or found[3] or ""


def fields(cls: type, link: docstrings.Link) -> str:
    """Hyper-parameters of a model, or the fields of a dataclass that comments explain, as a table."""
    if issubclass(cls, Model):
        return parameters_table(cls)
    if not dataclasses.is_dataclass(cls):
        return ""
    said = docstrings.field_comments(cls)
    rows = [f"| `{name}` | {link(text)} |" for name, text in said.items() if not name.startswith("_")]
    return "\n".join(["| field | |", "|---|---|", *rows]) if rows else ""


def parameters_table(cls: type[Model]) -> str:
    """The hyper-parameters of a model as a Markdown table."""
    lines = ["| hyper-parameter | default | allowed | tuned over | |", "|---|---|---|---|---|"]
    for one in described(cls):
        allowed = one.allowed or {"bool": "True, False"}.get(one.kind, one.kind)
        allowed = re.sub(r"('[^']*')", r"`\1`", allowed.replace(" | ", ", "))
        tuned = re.sub(r"('[^']*')", r"`\1`", one.tuned)
        lines.append(f"| `{one.name}` | `{one.default}` | {allowed} | {tuned} | {docstrings.escaped(one.doc)} |")
    return "\n".join(lines)
