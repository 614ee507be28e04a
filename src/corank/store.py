"""Model files: one safetensors file of arrays and JSON, under one checksum. Nothing in it can run code.

The file is plain safetensors with one metadata entry, `corank`: a JSON text with the format number, the model's name,
its hyper-parameters, its plain values and the SHA-256 of the whole file (computed with the digest's own 64 characters
set to zero, so that any changed byte shows). A save is written beside the target and renamed, so a killed save leaves
the old file.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .atomic import replacing
from .data import Array, Vocab
from .errors import CorankError, ModelFileError

if TYPE_CHECKING:
    from .model import Model

FORMAT = 1
_NO_DIGEST = "0" * 64
_MAX_HEADER = 512_000_000


def save(model: Model, path: str | Path) -> None:
    """Write a fitted model to `path`; the old file stays until the new one is whole."""
    arrays, plain = _pack(model._learned())
    write_file(path, arrays, {"model": model.name(), "params": model.params(), "state": plain})


def write_file(path: str | Path, arrays: dict[str, Array], meta: dict[str, Any]) -> None:
    """Arrays and JSON under a checksum, renamed into place when they are whole."""
    from safetensors.numpy import save_file

    from . import __version__

    meta = {"format": FORMAT, "version": __version__, **meta, "sha256": _NO_DIGEST}
    try:
        text = json.dumps(meta, allow_nan=False)
    except (TypeError, ValueError) as why:
        raise CorankError(f"{meta['model']} holds something that a model file cannot: {why}") from None
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with replacing(path) as part:
        save_file(arrays, part, metadata={"corank": text})
        digest, at = _digest(part, _NO_DIGEST)
        with part.open("r+b") as file:
            file.seek(at)
            file.write(digest.encode())


def load(path: str | Path, *, model: type[Model] | None = None) -> Model:
    """Read a model that `Model.save` wrote; anything else is refused with a `ModelFileError`.

    model : the class to make, for models of your own that are not part of corank.
    """
    from .model import find
    from .params import check

    path = Path(path)
    meta, arrays = read_file(path)
    if model is not None and model.name() != meta.get("model"):
        raise ModelFileError(
            f"{path} holds a model {meta.get('model')!r}, not {model.name()!r}: leave model= out, or give its class"
        )
    try:
        kind = model or find(meta["model"])
        made = kind(**meta["params"])
    except (CorankError, TypeError, KeyError) as why:
        raise ModelFileError(f"{path} needs a newer corank than this one ({why}): upgrade corank") from None
    try:
        check(made)
        for name, value in _unpack(arrays, meta["state"]).items():
            if not name.endswith("_") or name.startswith("_"):
                raise ValueError(f"{name!r} is nothing that a model learns")
            setattr(made, name, value)
        _consistent(made)
        # What only the model itself can know, such as two tables of one width, shows when it answers once.
        if made._score(np.zeros(1, np.int32)).shape != (1, len(made.items_)):
            raise ValueError("it does not score its own items")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as why:
        raise ModelFileError(f"{path} is not a whole corank model ({why}): save the model again") from None
    return made


def read_file(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Metadata and arrays of one file, even while a new model is being renamed over it."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    while True:
        before = _identity(path)
        try:
            meta, arrays = read_meta(path), load_file(path)
        except (SafetensorError, OSError, ValueError, KeyError) as why:
            if _identity(path) != before:
                continue
            if isinstance(why, ModelFileError):
                raise
            raise ModelFileError(f"{path} is damaged ({why}): save the model again") from None
        if _identity(path) == before:
            return meta, arrays


def _identity(path: Path) -> tuple[int, ...]:
    try:
        now = path.stat()
    except OSError:
        return ()
    return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns


def read_meta(path: Path) -> dict[str, Any]:
    """The checked metadata of a model file, without its arrays."""
    if not path.exists():
        raise ModelFileError(f"there is no model file {path}: make one with model.save or `corank fit`")
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model file")
    not_ours = f"{path} is not a corank model file: make one with model.save or `corank fit`"
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(_MAX_HEADER, path.stat().st_size - 8):
                raise ModelFileError(not_ours)
            header = json.loads(file.read(length))
        meta = json.loads(header["__metadata__"]["corank"])
        number, written = int(meta["format"]), str(meta["sha256"])
    except OSError as why:
        raise ModelFileError(f"cannot read {path}: {why.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ModelFileError(not_ours) from None
    if number > FORMAT:
        raise ModelFileError(f"{path} has format {number} and this corank reads up to {FORMAT}: upgrade corank")
    if len(written) != 64 or _digest(path, written)[0] != written:
        raise ModelFileError(f"{path} is damaged: its checksum does not match; copy or save it again")
    return dict(meta)


def _digest(path: Path, written: str) -> tuple[str, int]:
    """SHA-256 of the file with `written`, its digest, zeroed; and where in the file that digest stands."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        size = file.read(8)
        header = file.read(int.from_bytes(size, "little"))
        marked = f'\\"sha256\\": \\"{written}\\"'.encode()
        at = header.rfind(marked)
        if at < 0:
            raise ModelFileError(f"{path} has no checksum: it was not written by corank")
        at += marked.index(written.encode())
        hasher.update(size + header[:at] + _NO_DIGEST.encode() + header[at + 64 :])
        while chunk := file.read(1 << 22):
            hasher.update(chunk)
    return hasher.hexdigest(), at + 8


def _pack(state: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays for safetensors, and the rest for JSON; a vocabulary of strings becomes bytes and offsets."""
    arrays: dict[str, Array] = {}
    plain: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, Vocab) and value.strings:
            encoded = [key.encode("utf-8", "surrogatepass") for key in value.ids.tolist()]
            arrays[f"{name}bytes"] = np.frombuffer(b"".join(encoded), np.uint8)
            arrays[f"{name}ends"] = np.cumsum([len(e) for e in encoded], dtype=np.int64)
        elif isinstance(value, Vocab):
            arrays[f"{name}ids"] = np.ascontiguousarray(value.ids)
        elif isinstance(value, np.ndarray):
            arrays[name] = np.ascontiguousarray(value)
        else:
            plain[name] = value
    return arrays, plain


def _unpack(arrays: dict[str, Array], plain: dict[str, Any]) -> dict[str, Any]:
    state = dict(plain)
    for name, array in arrays.items():
        if name.endswith("_bytes"):
            base = name.removesuffix("bytes")
            raw, ends = array.tobytes(), arrays[f"{base}ends"]
            starts = np.concatenate([[0], ends[:-1]])
            keys = [
                raw[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
            ]
            state[base] = Vocab(np.array(keys, dtype=object))
        elif name.endswith("_ids"):
            state[name.removesuffix("ids")] = Vocab(array)
        elif not name.endswith("_ends"):
            state[name] = array
    return state


def _consistent(model: Model) -> None:
    """Indices within bounds and tables of the right height: kernels trust their input, a file must not be trusted."""
    state = model._learned()
    sizes = {"user": len(state["users_"]), "item": len(state["items_"])}
    if "seen_indptr_" not in state or "titles_" not in state:
        raise ValueError("parts are missing")
    for name, value in state.items():
        side = name.partition("_")[0]
        if isinstance(value, np.ndarray) and side in sizes and len(value) != sizes[side]:
            raise ValueError(f"{name} has {len(value)} rows and there are {sizes[side]} {side}s")
        if name.endswith("_indptr_"):
            index = state[name.replace("_indptr_", "_index_")]
            beside = state.get(name.replace("_indptr_", "_value_"), index)
            rows = sizes["user" if name == "seen_indptr_" else "item"]
            if value.dtype != np.int64 or index.dtype != np.int32 or value.size != rows + 1 or value[0] != 0:
                raise ValueError(f"{name} does not fit")
            if beside.size != index.size and not (name == "seen_indptr_" and beside.size == 0):
                raise ValueError(f"{name.replace('_indptr_', '_value_')} does not fit")
            if (np.diff(value) < 0).any() or value[-1] != index.size:
                raise ValueError(f"{name} is not a running total")
            if index.size and (index.min() < 0 or index.max() >= sizes["item"]):
                raise ValueError(f"{name.replace('_indptr_', '_index_')} points outside the catalogue")
