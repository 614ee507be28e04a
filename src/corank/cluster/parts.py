"""Tables in many files: a folder of Parquet or CSV files, here or behind a URL, that workers read side by side."""

from __future__ import annotations

import importlib
import logging
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.columns import Where, convert, id_array, row_number
from ..errors import CorankError, MissingExtra, shorten
from ..reading.column_names import ROLES, Columns, choose
from ..reading.csv_format import columns_of, sniff
from ..reading.packed import is_table
from ..reading.parquet import is_parquet, parquet_columns, parquet_names, parquet_sample
from ..reading.tables import guess_columns
from ..reading.text_columns import read_text
from .shard import even_cuts

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger("corank.reading")
TABLE = ("user", "item", "value", "time", "separator", "header")  # options that say how files are read


@dataclass(frozen=True)
class Parts:
    """Files that together are one table, in the order of their names.

    options : user, item, value, time, separator, header, duplicates and values, as in `read_csv`; positive, the
        smallest value of the rows that are kept.
    """

    paths: tuple[str, ...]
    sizes: tuple[int, ...]  # bytes
    options: Mapping[str, Any] = field(default_factory=dict)

    def of(self, rank: int, size: int) -> list[str]:
        """The consecutive files that one of `size` workers reads: about as many bytes as the others; maybe none."""
        if size >= len(self.paths):
            return list(self.paths[rank : rank + 1])
        cuts = even_cuts(np.array(self.sizes) + 1, size)
        return list(self.paths[cuts[rank] : cuts[rank + 1]])


def find_parts(place: str | Path, **options: Any) -> Parts:
    """The tables of a folder and of the folders in it, or a single table; a path, or any URL that fsspec knows."""
    known = {*TABLE, "duplicates", "values", "positive"}
    if unknown := [name for name in options if name not in known]:
        raise CorankError(f"{unknown[0]}= is not an option of tables that workers read: leave it out")
    options = {name: value for name, value in options.items() if value is not None}
    if is_url(place):
        fs, place_in = _filesystem(str(place))
        try:
            files = fs.find(place_in, detail=True).items()
            found = {fs.unstrip_protocol(path): about["size"] for path, about in files if _plain(path[len(place_in) :])}
        except (OSError, ValueError) as why:
            raise CorankError(f"cannot list {place} ({shorten(str(why), 200)}): check the URL and the rights") from None
    else:
        root = Path(place).expanduser()
        if not root.exists():
            raise CorankError(f"there is no file or folder {str(place)!r}: check the path")
        inside = (path for path in root.rglob("*") if path.is_file() and _plain(path.relative_to(root)))
        found = {str(path.absolute()): path.stat().st_size for path in ([root] if root.is_file() else inside)}
    found = {path: size for path, size in sorted(found.items()) if is_table(Path(path))}
    if not found:
        raise CorankError(f"{place} holds no table: give a folder with .parquet, .csv or .tsv files")
    return Parts(tuple(found), tuple(found.values()), options)


def _plain(path: str | Path) -> bool:
    """Whether a file is part of the data: engines write others whose names begin with _ or with a point."""
    return not any(name.startswith(("_", ".")) for name in Path(path).parts)


def is_url(place: str | Path) -> bool:
    return "://" in str(place)


def _filesystem(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path in it."""
    try:
        fsspec = importlib.import_module("fsspec")
    except ModuleNotFoundError:
        raise MissingExtra(f"reading {url}", "ray") from None
    try:
        fs, path = fsspec.url_to_fs(url)
    except (ValueError, ImportError, OSError) as why:
        raise CorankError(f"cannot open {url}: {shorten(str(why), 200)}") from None
    return fs, str(path)


def form_of(path: str, options: Mapping[str, Any]) -> Columns:
    """Which columns of a file are read; they are the same for all files of one table."""
    how = {name: options[name] for name in TABLE if name in options}
    columns: Columns = with_file(path, lambda file: guess_columns(file, **how))
    return columns


def with_file(path: str, read: Any) -> Any:
    """Call `read` with a local path; a file behind a URL is copied for it. Errors name what was asked for."""
    if not is_url(path):
        return read(Path(path))
    fs, remote = _filesystem(path)
    with tempfile.TemporaryDirectory(prefix="corank-") as folder:
        local = Path(folder) / Path(remote).name
        try:
            fs.get_file(remote, str(local))
        except (OSError, ValueError) as why:
            raise CorankError(f"cannot read {path}: {shorten(str(why), 200)}") from None
        try:
            return read(local)
        except CorankError as why:
            raise CorankError(str(why).replace(str(local), path)) from None


def read_part(path: str, options: Mapping[str, Any]) -> pl.DataFrame:
    """The columns of a file by their roles: ids as integers or text, value and time where there are such columns."""
    frame: pl.DataFrame = with_file(path, partial(_read, options=options))
    return frame


def _read(path: Path, options: Mapping[str, Any]) -> pl.DataFrame:
    import polars as pl

    wanted = {role: options.get(role) for role in ROLES}
    where: Where = row_number
    if is_parquet(path):
        sample = partial(parquet_sample, path)
        roles = choose(parquet_names(path), wanted, f"file '{path}'", sample=sample)
        frame = parquet_columns(path, roles.values())
        series = {role: frame[name] for role, name in roles.items()}
    else:
        named = [name for name in wanted.values() if name]
        layout = sniff(path, separator=options.get("separator"), header=options.get("header"), given=named)
        columns = columns_of(layout, wanted)
        roles = columns.roles()
        series, where = read_text(layout, columns)
    if not len(series["user"]):
        log.warning("file '%s' has no rows: it is left out", path)
        return pl.DataFrame()
    names = {role: f"column {name!r} of '{path}'" for role, name in roles.items()}
    found = convert(series, names, where)
    for role in ("user", "item"):
        column = found[role]
        if not (isinstance(column, pl.Series) and column.dtype == pl.String):
            ids = id_array(column, role)
            found[role] = pl.Series(ids, dtype=pl.String if ids.dtype == object else pl.Int64)
    return pl.DataFrame(found)
