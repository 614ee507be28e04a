"""`corank models`: the models and their hyper-parameters."""

from __future__ import annotations

import inspect

from .options import Args
from .show import say


def list_models(args: Args) -> None:
    """All models, one line each; with a name, that model's description and hyper-parameters."""
    from ..models import available, find
    from ..params import params_of

    if args.name is None:
        for name in available():
            print(f"{name:<14} {_first_paragraph(inspect.getdoc(find(name)))}")
        say("\ncorank models NAME lists the hyper-parameters")
        return
    cls = find(args.name)
    print(inspect.getdoc(cls))
    print()
    for name, (_, _, default, rule) in params_of(cls).items():
        choices = f"; one of {', '.join(map(str, rule.choices))}" if rule.choices else ""
        search = f"; searched {rule.search[0]} to {rule.search[-1]}" if rule.search and not rule.choices else ""
        print(f"  {name:<12} {rule.doc} (default {default}{choices}{search})")


def _first_paragraph(text: str | None) -> str:
    return (text or "").strip().split("\n\n")[0].replace("\n", " ")
