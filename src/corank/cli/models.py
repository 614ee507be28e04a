"""`corank models`: the models and their hyper-parameters."""

from __future__ import annotations

import inspect

from .options import Args
from .show import say


def list_models(args: Args) -> None:
    """All models, one line each; with a name, that model's description and hyper-parameters."""
    from ..models import available, find

    if args.name is None:
        for name in available():
            print(f"{name:<14} {_first_paragraph(inspect.getdoc(find(name)))}")
        say("\ncorank models NAME lists the hyper-parameters")
        return
    print(inspect.getdoc(find(args.name)))


def _first_paragraph(text: str | None) -> str:
    return (text or "").strip().split("\n\n")[0].replace("\n", " ")
