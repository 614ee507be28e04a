"""Which tables of a model look up the ids of its input, and which of these ids SSE must leave alone."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from ..errors import CorankError, suggest

log = logging.getLogger("corank")

ENDS = ("_token_id", "_token_ids", "_token_index")  # how the fields of a configuration that name special ids end


@dataclass
class Table:
    """An embedding of the model: the module that is called with ids, and the configuration of the part it is in.

    module : where the hook goes; a PEFT adapter around a table is called in its place, so that its low-rank part sees
        the same ids.
    core : the nn.Embedding or nn.EmbeddingBag inside.
    """

    name: str
    module: nn.Module
    core: nn.Embedding | nn.EmbeddingBag
    configs: list[Any] = field(default_factory=list)

    @property
    def size(self) -> int:
        return int(self.core.num_embeddings)


def find(model: nn.Module, names: Iterable[str] | str | None = None) -> list[Table]:
    """The tables `names`, or the input embeddings of the model.

    A model of transformers says itself which they are (`get_input_embeddings`), and so do its parts: encoder and
    decoder, or the model that PEFT wraps. Of any other model, it is the only table, tied ones counted once.
    """
    if not isinstance(model, nn.Module):
        raise CorankError(f"the model is a {type(model).__name__}: SSE needs a torch.nn.Module")
    if names is not None:
        return _named(model, [names] if isinstance(names, str) else list(names))
    found: dict[int, Table] = {}
    called = {id(module): name for name, module in model.named_modules()}
    for part in model.modules():
        module = _input_embeddings(part)
        core = None if module is None else unwrap(module)
        if module is not None and core is not None:
            table = found.setdefault(id(core), Table(called.get(id(module), "?"), module, core))
            table.configs += [config for config in _configs(part) if not any(config is one for one in table.configs)]
    return list(found.values()) or _only_table(model)


def unwrap(module: nn.Module) -> nn.Embedding | nn.EmbeddingBag | None:
    """The table inside an adapter of PEFT, or the module itself; None where it looks up no ids (a patch projection)."""
    inner: Any = module
    while isinstance(inner, nn.Module) and not isinstance(inner, nn.Embedding | nn.EmbeddingBag):
        inner = getattr(inner, "base_layer", None) or getattr(inner, "original_module", None)
    return inner if isinstance(inner, nn.Embedding | nn.EmbeddingBag) else None


def special_ids(table: Table, tokenizer: Any = None, reserved: Iterable[int] | None = None) -> list[int]:
    """The ids that are neither replaced nor drawn: given ones, those of the tokenizer, of the configuration, padding.

    Rows behind the last id of the tokenizer, with which tables are filled up to a round size, were never trained: they
    are not drawn either. Without a tokenizer, the one that is stored beside the weights of the model is read; the
    network is not asked.
    """
    out = set() if reserved is None else _given(reserved, table)
    known = None if tokenizer is None else _of_tokenizer(tokenizer)
    if known is None and reserved is None and table.configs:
        known = _beside(table)
    if known is not None:
        ids, length = known
        if max([length - 1, *ids]) >= table.size:
            raise CorankError(
                f"the tokenizer has {length:,} ids and the table {table.name!r} has {table.size:,} rows: give the "
                "tokenizer of this model, or name the tables that use it with tables=[...]"
            )
        out |= {*ids, *range(length, table.size)}
    for config in table.configs:
        out |= {one for one in _of_config(config) if 0 <= one < table.size}
    if table.core.padding_idx is not None:
        out.add(int(table.core.padding_idx))
    return sorted(out)


def _named(model: nn.Module, names: list[str]) -> list[Table]:
    known = {
        name: (module, core)
        for name, module in model.named_modules(remove_duplicate=False)
        if (core := unwrap(module)) is not None
    }
    if not known:
        raise CorankError(NONE.format(type(model).__name__))
    for name in names:
        if name not in known:
            raise CorankError(f"there is no embedding {name!r} in the model{suggest(name, known)}")
    if not names:
        raise CorankError("tables=[] names no embedding: leave it out, or name at least one")
    tables: dict[int, Table] = {}
    for name in names:
        module, core = known[name]
        tables.setdefault(id(core), Table(name, module, core, list(_configs(model))))
    return list(tables.values())


NONE = "the {} has no embeddings: SSE needs a table that looks up ids, nn.Embedding or nn.EmbeddingBag"


def _only_table(model: nn.Module) -> list[Table]:
    tables = [
        Table(name, module, module)
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag)
    ]
    if not tables:
        raise CorankError(NONE.format(type(model).__name__))
    if len({id(table.core.weight) for table in tables}) > 1:
        names = ", ".join(repr(table.name) for table in tables)
        raise CorankError(
            f"the model has {len(tables)} embeddings ({names}), and positions must not be replaced: "
            f"name those of the input, e.g. tables=[{tables[0].name!r}]"
        )
    return tables


def _input_embeddings(part: nn.Module) -> nn.Module | None:
    """What a part of a model says its input embeddings are."""
    if not hasattr(type(part), "get_input_embeddings"):  # of the type: wrappers hand on what is inside them
        return None
    try:
        module = part.get_input_embeddings()  # type: ignore[operator]
    except (NotImplementedError, AttributeError):  # a part without: a vision tower, a head
        return None
    return module if isinstance(module, nn.Module) else None


def _configs(part: nn.Module) -> Iterator[Any]:
    for name in ("config", "generation_config"):
        config = getattr(part, name, None)
        if config is not None and hasattr(config, "to_dict"):
            yield config


def _of_config(config: Any) -> Iterator[int]:
    for name in config.to_dict():
        value = getattr(config, name, None) if name.endswith(ENDS) else None
        values = value if isinstance(value, list | tuple) else [value]
        yield from (one for one in values if isinstance(one, int) and not isinstance(one, bool))


def _of_tokenizer(tokenizer: Any) -> tuple[list[int], int]:
    """Its special ids, and how many ids it has. A processor of several inputs has a tokenizer inside."""
    tokenizer = getattr(tokenizer, "tokenizer", tokenizer)
    ids = getattr(tokenizer, "all_special_ids", None)
    if ids is None:
        raise CorankError(
            f"the tokenizer is a {type(tokenizer).__name__} without all_special_ids: give one of transformers, or the "
            "ids of its special tokens with reserved=[...]"
        )
    return [int(one) for one in ids], len(tokenizer)


def _beside(table: Table) -> tuple[list[int], int] | None:
    """What the tokenizer says that is stored beside the weights, if there is one that fits."""
    name = next((n for config in table.configs if (n := getattr(config, "_name_or_path", ""))), "")
    if name:
        try:
            from transformers import AutoTokenizer

            # Local files only, and no code that may come with them.
            tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=True, trust_remote_code=False)
            known = _of_tokenizer(tokenizer)
        except Exception as why:  # files beside weights can be anything; the configuration remains
            log.debug("no tokenizer beside %s: %s", name, why)
        else:
            # Where files are missing, transformers makes a tokenizer of special tokens alone: it must fill the table.
            if max([known[1] - 1, *known[0]]) < table.size < 2 * known[1]:
                return known
    log.warning(
        "SSE on %r: without tokenizer=..., only the special tokens that the configuration of the model names are left "
        "alone",
        table.name,
    )
    return None


def _given(reserved: Iterable[int], table: Table) -> set[int]:
    ids = set()
    for one in reserved:
        try:
            ids.add(int(one))
        except (TypeError, ValueError):
            raise CorankError(f"reserved holds {one!r}: it must hold ids, which are whole numbers") from None
    wrong = [one for one in ids if not 0 <= one < table.size]
    if wrong:
        raise CorankError(
            f"the reserved id {min(wrong)} is not one of the table {table.name!r}: its ids are 0 to {table.size - 1}"
        )
    return ids
