"""Model files: one safetensors file of arrays and JSON, under one checksum. Nothing in it can execute code.

The file is plain safetensors with one metadata entry, `corank`: a JSON text with the format number, the model's name,
its hyper-parameters, its plain values and the SHA-256 of the whole file (computed with the digest's own 64 characters
set to zero, so that any changed byte is detected). A file is written beside the target and renamed, so a killed save
leaves the old one. Reading opens the file once and hashes while it reads.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .data import Array, Vocab
from .data.labels import Column, Labels
from .errors import CorankError, ModelFileError
from .system.atomic import replacing, sweep
from .system.memory import free_bytes, no_room

FORMAT = 1
_NO_DIGEST = "0" * 64
_MAX_HEADER = 512_000_000
_DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(bool),
    **{f"U{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"I{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"F{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
}


def write_file(path: str | Path, arrays: dict[str, Array], meta: dict[str, Any]) -> None:
    """Write arrays and JSON under a checksum; the file is renamed into place when it is complete."""
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
        with part.open("r+b") as file:
            header, at = _header(part, file, _NO_DIGEST)
            hasher = hashlib.sha256(header)
            while chunk := file.read(1 << 22):
                hasher.update(chunk)
            file.seek(at)
            file.write(hasher.hexdigest().encode())


def read_file(path: str | Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Metadata and arrays of a file that `write_file` wrote; anything else raises `ModelFileError`."""
    path = Path(path)
    if path.is_dir():
        raise ModelFileError(f"{path} is a folder, not a model file: give the file in it, such as best.corank")
    sweep(path.parent)
    try:
        with path.open("rb") as file:
            meta, tensors = _read_header(path, file)
            free, size = free_bytes(), os.fstat(file.fileno()).st_size
            if free is not None and size > free:
                raise ModelFileError(no_room(size, free, f"loading {path}", "free some, or use a smaller model"))
            raw, _ = _header(path, file, meta["sha256"])
            hasher = hashlib.sha256(raw)
            arrays = {}
            for name, dtype, shape in tensors:
                arrays[name] = np.empty(shape, dtype)
                view = arrays[name].reshape(-1).view(np.uint8).data
                if file.readinto(view) != len(view):
                    raise ModelFileError(f"{path} ends too early: copy or save it again")
                hasher.update(view)
    except FileNotFoundError:
        raise ModelFileError(f"there is no model file {path}: make one with model.save or `corank fit`") from None
    except OSError as why:
        raise ModelFileError(f"cannot read {path}: {why.strerror}") from None
    if hasher.hexdigest() != meta["sha256"]:
        raise ModelFileError(f"{path} is damaged: its checksum does not match; copy or save it again")
    return meta, arrays


def _read_header(path: Path, file: BinaryIO) -> tuple[dict[str, Any], list[tuple[str, Any, tuple[int, ...]]]]:
    """Metadata, and (name, dtype, shape) of each array in the order of the file, whose bytes they fill exactly."""
    not_ours = f"{path} is not a corank model file: make one with model.save or `corank fit`"
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(_MAX_HEADER, size - 8):
        raise ModelFileError(not_ours)
    try:
        header = json.loads(file.read(length))
        meta = dict(json.loads(header.pop("__metadata__")["corank"]))
        number, written = int(meta["format"]), str(meta["sha256"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        raise ModelFileError(not_ours) from None
    if number > FORMAT:
        raise ModelFileError(f"{path} has format {number} and this corank reads up to {FORMAT}: upgrade corank")
    if len(written) != 64:
        raise ModelFileError(f"{path} is damaged: its checksum does not match; copy or save it again")
    tensors, end = [], 0
    try:
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            dtype, shape = _DTYPES[entry["dtype"]], tuple(entry["shape"])
            begin, stop = entry["data_offsets"]
            if any(type(n) is not int or n < 0 for n in (*shape, begin, stop)) or len(shape) > 8:
                raise ValueError(f"{name} has no valid shape")
            if begin != end or stop - begin != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{name} does not fill its place")
            tensors.append((name, dtype, shape))
            end = stop
        if end != size - 8 - length:
            raise ValueError(f"{end} bytes of arrays are declared and {size - 8 - length} are there")
    except (KeyError, TypeError, ValueError) as why:
        raise ModelFileError(f"{path} is damaged ({why}): save the model again") from None
    return meta, tensors


def _header(path: Path, file: BinaryIO, written: str) -> tuple[bytes, int]:
    """The bytes up to the arrays with `written`, the digest, zeroed; and where in the file that digest is."""
    file.seek(0)
    size = file.read(8)
    header = file.read(int.from_bytes(size, "little"))
    marked = f'\\"sha256\\": \\"{written}\\"'.encode()
    at = header.rfind(marked)
    if at < 0:
        raise ModelFileError(f"{path} has no checksum: it was not written by corank")
    at += marked.index(written.encode())
    return size + header[:at] + _NO_DIGEST.encode() + header[at + 64 :], at + 8


def pack(state: dict[str, Any]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays for safetensors, and the rest for JSON; a vocabulary of strings becomes bytes and offsets.

    Of labels, the names, kinds and words are JSON, and the columns are arrays by their number.
    """
    arrays: dict[str, Array] = {}
    plain: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, Vocab) and value.strings:
            encoded = [key.encode("utf-8", "surrogatepass") for key in value.ids.tolist()]
            arrays[f"{name}bytes"] = np.frombuffer(b"".join(encoded), np.uint8)
            arrays[f"{name}ends"] = np.cumsum([len(e) for e in encoded], dtype=np.int64)
        elif isinstance(value, Vocab):
            arrays[f"{name}ids"] = np.ascontiguousarray(value.ids)
        elif isinstance(value, Labels):
            plain[name] = [[label, column.kind, list(column.words)] for label, column in value.columns.items()]
            for number, column in enumerate(value.columns.values()):
                arrays[f"{name}.{number}"] = np.ascontiguousarray(column.values)
                if column.ends is not None:
                    arrays[f"{name}.{number}.ends"] = column.ends
        elif isinstance(value, np.ndarray):
            arrays[name] = np.ascontiguousarray(value)
        else:
            plain[name] = value
    return arrays, plain


def unpack(arrays: dict[str, Array], plain: dict[str, Any]) -> dict[str, Any]:
    """The state that `pack` took apart."""
    state = dict(plain)
    arrays = dict(arrays)
    if "labels_" in plain:
        state["labels_"] = _labels(arrays, plain["labels_"])
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


def _labels(arrays: dict[str, Array], plain: Any) -> Labels:
    """The labels that `pack` took apart; their arrays are removed from `arrays`."""
    if not isinstance(plain, list) or not all(isinstance(entry, list) and len(entry) == 3 for entry in plain):
        raise ValueError("labels_ must be a name, a kind and words per label")
    columns: dict[str, Column] = {}
    for number, (label, kind, words) in enumerate(plain):
        if not isinstance(label, str) or not isinstance(kind, str) or not isinstance(words, list) or label in columns:
            raise ValueError("labels_ must be a name, a kind and words per label")
        values, ends = arrays.pop(f"labels_.{number}"), arrays.pop(f"labels_.{number}.ends", None)
        columns[label] = Column(kind, values, tuple(words), ends)
    return Labels(columns)
