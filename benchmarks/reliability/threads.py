"""Threads that use the same models at once: the answers must be those of one thread."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .part import Outcome, Part, Tell

THREADS = 8
MODELS: dict[str, dict[str, Any]] = {
    "wmf": {"dim": 16, "epochs": 3},
    "ease": {},
    "sparse_ease": {},
    "item_knn": {},
    "als": {"dim": 8, "epochs": 3},
    "bpr": {"dim": 8, "epochs": 3},
    "sasrec": {"dim": 16, "epochs": 1, "blocks": 1, "max_len": 20},
    "gru4rec": {"dim": 16, "epochs": 1, "max_len": 20},
}
Answer = tuple[bytes, ...]


def requests() -> list[tuple[str, Callable[[], Answer]]]:
    """(kind, call) for shared models: recommendations, similar items, scores of pairs, fold-in."""
    import corank as cr

    data = cr.synthetic.realistic(users=300, items=150, rows=6_000, groups=4, seed=4).data
    users, items = data.users.ids.tolist(), data.items.ids.tolist()
    out: list[tuple[str, Callable[[], Answer]]] = []
    for name, params in MODELS.items():
        model = cr.find(name)(**params).fit(data)

        def ranked(call: Callable[[], Any]) -> Callable[[], Answer]:
            def answer() -> Answer:
                found = call()
                return found.items.tobytes(), found.scores.tobytes()

            return answer

        def scored(model: Any = model) -> Answer:
            return (np.asarray(model.predict(users[:50], items[:50])).tobytes(),)

        calls: dict[str, list[Callable[[], Any]]] = {
            "recommend": [
                lambda model=model, few=few: model.recommend(few, k=10) for few in (users[:1], users[5:40], users)
            ],
            "similar": [lambda model=model: model.similar_items(items[:20], k=5)],
            "fold-in": [
                lambda model=model, few=few: model.recommend(histories=few, k=10)
                for few in ([items[:3]], [items[i : i + 1 + i % 7] for i in range(40)])
            ],
        }
        for kind, group in calls.items():
            try:
                group[0]()
            except cr.CorankError:  # a model without fold-in or similar items
                continue
            out += [(f"{name} {kind}", ranked(call)) for call in group]
        out.append((f"{name} predict", scored))
    return out


def run(seconds: int, seed: int, folder: Path, tell: Tell) -> Outcome:
    asked = requests()
    expected = [call() for _, call in asked]
    out, lock, end = Outcome(), threading.Lock(), time.monotonic() + seconds
    counts: Counter[str] = Counter()

    def work(number: int) -> None:
        draw = random.Random(seed * THREADS + number)
        while time.monotonic() < end:
            at = draw.randrange(len(asked))
            kind, call = asked[at]
            try:
                failure = "" if call() == expected[at] else f"{kind}: another answer than alone"
            except Exception as why:
                failure = f"{kind}: {type(why).__name__}: {why}"
            with lock:
                out.trial(failure)
                counts[kind.split()[1]] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.2)
        tell(int(seconds - max(0.0, end - time.monotonic())), seconds)
        if time.monotonic() > end + 60:
            out.trial("threads hang")
            break
    out.notes.append(
        f"{THREADS} threads for {seconds} s on {len(MODELS)} shared models ({', '.join(MODELS)}): "
        + ", ".join(f"{count:,} x {kind}" for kind, count in sorted(counts.items()))
    )
    return out


PARTS = [Part("8 threads for 60 seconds", 60, run, "each answer is equal bit for bit to that of one thread")]
