"""One file = one algorithm = one public class; `corank.find("wmf")` finds it by the name of its file."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CorankError, MissingExtra, ModelFileError, suggest

if TYPE_CHECKING:
    from ..model import Model


def available() -> list[str]:
    """Names of all models: the files in this folder."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))


def find(name: str) -> type[Model]:
    """The model class of a name, e.g. `find("wmf")`."""
    from ..model import Model

    if name not in available():
        raise CorankError(f"there is no model {name!r}{suggest(str(name), available())}")
    module = importlib.import_module(f".{name}", __package__)
    return next(
        v
        for v in vars(module).values()
        if isinstance(v, type) and issubclass(v, Model) and v.__module__ == module.__name__
    )


def others_have(param: str) -> str:
    """`, which sasrec and sse_pt have` for a hyper-parameter of other models; empty if no model has it."""
    from ..params import params_of

    names = [name for name in available() if param in params_of(find(name))]
    if not names:
        return ""
    if len(names) > 5:
        names = [*names[:3], f"{len(names) - 3} others"]
    return f", which {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))} {'have' if names[1:] else 'has'}"


def load(path: str | Path, *, model: type[Model] | None = None) -> Model:
    """Read a model that `Model.save` wrote; anything else raises `ModelFileError`.

    Parameters
    ----------
    path : the model file.
    model : the class to construct, for models of your own that are not part of corank.
    """
    from ..model_file import read_file, unpack
    from ..params import check
    from ..stored import check_state
    from ..system.memory import one_sentence

    path = Path(path)
    with one_sentence(f"reading {path}", "free some memory, or use a smaller model"):
        meta, arrays = read_file(path)
    name = meta.get("model")
    if model is not None and model.name() != name:
        raise ModelFileError(
            f"{path} holds a model {name!r}, not {model.name()!r}: leave model= out, or give its class"
        )
    try:
        cls = model or find(str(name))
        loaded = cls(**meta["params"])
    except (CorankError, TypeError, KeyError) as why:
        raise ModelFileError(f"{path} needs a newer corank than this one ({why}): upgrade corank") from None
    try:
        check(loaded)
        state = unpack(arrays, meta["state"])
        for name in cls.from_data:  # files from before a hyper-parameter could be left to the data
            state.setdefault(f"{name}_", meta["params"].get(name))
        check_state(loaded, state)
    except MissingExtra:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as why:
        raise ModelFileError(f"{path} is not a whole corank model ({why}): save the model again") from None
    return loaded
