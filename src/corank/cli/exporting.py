"""`corank export`: vectors, a search index or an ONNX network of a saved model, for use without corank."""

from __future__ import annotations

from pathlib import Path

from ..errors import CorankError
from .options import Args, writable
from .show import say


def export(args: Args) -> None:
    """Write what was asked for, and say how it was checked."""
    from ..export.vectors import check_ending, export_vectors
    from ..models import load

    asked = {name: getattr(args, name) for name in ("vectors", "index", "onnx") if getattr(args, name) is not None}
    if not asked:
        raise CorankError(
            "say what to export: --vectors FILE.npz (or .parquet), --index FILE.usearch or --onnx FILE.onnx"
        )
    if "vectors" in asked:
        check_ending(asked["vectors"])
    for name, path in asked.items():
        others = [other for kind, other in asked.items() if kind != name]
        if Path(path).resolve() in [Path(other).resolve() for other in others]:
            raise CorankError(f"{path} is asked for twice: give each export a file of its own")
        writable(Path(path).parent, Path(path), sources=[args.model])
    model = load(args.model)
    if "vectors" in asked:
        found = export_vectors(model, args.vectors)
        say(
            f"{args.vectors}: vectors of {found.users.size:,} users and {found.items.size:,} items, "
            f"{found.item_vectors.shape[1]} coordinates"
        )
    if "index" in asked:
        from ..export.index import export_index

        say(f"{args.index}: {export_index(model, args.index, k=args.k)}")
    if "onnx" in asked:
        from ..export.onnx import export_onnx

        say(f"{args.onnx}: {export_onnx(model, args.onnx)}")
