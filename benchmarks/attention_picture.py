"""Attention of SASRec and of SSE-PT for one user of MovieLens-1M (the dissertation's figure 6.2), for docs/sse-pt.md.

Both read the last 24 films of each user. The chart of each model is what `corank explain MODEL --user USER --kind
attention --out FILE.svg` writes.

python -m benchmarks.attention_picture      writes docs/results/attention-sasrec.svg and attention-sse-pt.svg, and
                                            prints the shares of the newest items; a few minutes
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import corank as cr
from corank.report.reason_charts import attention
from corank.system.atomic import write_text

from .tools import ROOT

LENGTH, USER, NEWEST = 24, 1, 5
SHARED: dict[str, Any] = {"max_len": LENGTH, "epochs": 12, "loss": "softmax", "dropout": 0.2, "batch_size": 128}
MODELS = {
    "sasrec": cr.SASRec(**SHARED, dim=50),
    "sse-pt": cr.SSEPT(**SHARED, dim=50, dim_user=25, sse_user=0.9, sse_item=0.1),
}


def main() -> None:
    root = os.environ.get("CORANK_DATA") or ROOT.parent / "shared" / "data"
    split = cr.leave_last_out(cr.datasets.load("ml-1m", root=root))
    rng = np.random.default_rng(0)
    some = rng.choice(split.train.users.ids, 500, replace=False)
    for name, model in MODELS.items():
        model.fit(split.train)
        found = model.explain(USER, k=1, kind="attention")
        write_text(ROOT / "docs" / "results" / f"attention-{name}.svg", attention(found) + "\n")
        shares = [model.attention(user)["weights"].mean(axis=(0, 1))[-1, -NEWEST:].sum() for user in some]
        report = cr.evaluate(model, split, ["ndcg@10"], part="valid", bootstrap=0)
        print(
            f"{name}: of the attention of the last position, {np.mean(shares):.1%} to the newest {NEWEST} of {LENGTH} "
            f"items (mean of 500 users); NDCG@10 {report['ndcg@10']:.4f} on the validation items"
        )


if __name__ == "__main__":
    main()
