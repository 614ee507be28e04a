"""The theory of stochastic shared embeddings on trained models: Rademacher complexity, the bound, and embeddings.

    python -m benchmarks.sse_theory [PART ...]       writes docs/results/sse-theory.md and its two pictures

The loss of matrix factorisation, averaged over all replacements of a user and of an item, has a closed form: it needs
the means and second moments of the two tables only. So everything here is exact, but for the draws of the signs and
the search for the worst parameters. Per rating r_ij, with u and v extended by their biases:

    (1-p)^2 l(u_i, v_j) + (1-p)p mean_k l(u_i, v_k) + p(1-p) mean_k l(u_k, v_j) + p^2 mean_kl l(u_k, v_l)
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import corank as cr
from corank.system.atomic import write_text

from . import records, sse_pictures
from .tools import ROOT

PARTS = ("ratios", "bound", "embeddings")
KEPT = records.ROOT / "sse-theory"  # what each part has found
PAGE = ROOT / "docs" / "results" / "sse-theory.md"
PROBABILITIES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)  # of the simulation; the dissertation varies it as widely
TRAINED = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3)  # of the models whose bound is computed
SETTING = {"dim": 20, "reg": 0.02, "epochs": 30}
SIGNS = 100  # vectors of random signs
ASCENTS, STEPS, SAMPLE, RADIUS = 3, 50, 50_000, 1.5  # the search for the worst parameters, on a sample of the ratings


@dataclass
class Factors:
    """u float[users, d] and v float[items, d]; the prediction of a centred rating is their inner product."""

    u: Tensor
    v: Tensor

    @classmethod
    def of(cls, model: cr.MF) -> Factors:
        """Those of a fitted model: vectors extended by the biases, so that the prediction is one product."""
        one = [np.ones((len(table), 1), np.float32) for table in (model.user_factors_, model.item_factors_)]
        u = np.hstack([model.user_factors_, model.user_bias_[:, None], one[0]])
        v = np.hstack([model.item_factors_, one[1], model.item_bias_[:, None]])
        return cls(torch.from_numpy(u), torch.from_numpy(v))


@dataclass
class Ratings:
    """user, item int64[n] and centred values float[n]."""

    user: Tensor
    item: Tensor
    value: Tensor

    @classmethod
    def of(cls, data: cr.Dataset, mean: float) -> Ratings:
        user, item = (torch.from_numpy(np.asarray(codes, np.int64)) for codes in (data.user, data.item))
        return cls(user, item, torch.from_numpy(data.value.astype(np.float32)) - mean)


def smoothed(at: Factors, on: Ratings, p: float) -> Tensor:
    """The squared error of each rating, averaged over all replacements of its user and its item: float[n]."""
    u, v, y = at.u[on.user], at.v[on.item], on.value
    plain = (y - (u * v).sum(1)).square()
    if p == 0:
        return plain
    mean_u, mean_v = at.u.mean(0), at.v.mean(0)
    moment_u, moment_v = at.u.T @ at.u / len(at.u), at.v.T @ at.v / len(at.v)
    wide_u = ((at.u @ moment_v) * at.u).sum(1)[on.user]  # mean_k (u_i . v_k)^2
    wide_v = ((at.v @ moment_u) * at.v).sum(1)[on.item]
    other_item = y.square() - 2 * y * (u @ mean_v) + wide_u
    other_user = y.square() - 2 * y * (v @ mean_u) + wide_v
    both = y.square() - 2 * y * (mean_u @ mean_v) + (moment_u * moment_v).sum()
    return (1 - p) ** 2 * plain + (1 - p) * p * (other_item + other_user) + p**2 * both


def signs(n: int, count: int, seed: int = 0) -> Tensor:
    """Rademacher vectors: float[count, n] of -1 and 1."""
    drawn = torch.Generator().manual_seed(seed)
    return torch.stack([torch.randint(0, 2, (n,), generator=drawn, dtype=torch.int8) for _ in range(count)]) * 2 - 1


def sums(loss: Tensor, sigma: Tensor) -> np.ndarray:
    """|sum_i sigma_i loss_i| of each vector of signs: float[count]."""
    return np.array([float((one.float() @ loss).abs()) for one in sigma])


def worst(on: Ratings, sigma: Tensor, p: float, users: int, items: int, dim: int) -> float:
    """The largest |sum_i sigma_i loss_i| that gradient ascent finds where no vector is longer than RADIUS.

    A lower bound of the supremum: the problem is not concave.
    """
    best = 0.0
    for sign in (1.0, -1.0):
        torch.manual_seed(0)
        at = Factors(*(torch.randn(n, dim).mul_(0.3).requires_grad_() for n in (users, items)))
        climb = torch.optim.Adam([at.u, at.v], lr=0.1)
        for _ in range(STEPS):
            climb.zero_grad()
            value = sign * (sigma.float() @ smoothed(at, on, p))
            (-value / len(sigma)).backward()
            climb.step()
            with torch.no_grad():
                for table in (at.u, at.v):
                    table.mul_((RADIUS / table.norm(dim=1, keepdim=True).clamp(min=1e-9)).clamp(max=1))
        with torch.no_grad():
            best = max(best, float(sign * (sigma.float() @ smoothed(at, on, p))))
    return best


def simulation(data: cr.Dataset, model: cr.MF) -> dict[str, np.ndarray]:
    """Ratios to p = 0, float[p, draws], of a trained model, of random parameters, and of the worst that are found."""
    on = Ratings.of(data, model.mean_)
    trained = Factors.of(model)
    torch.manual_seed(1)
    size = float(on.value.std()) ** 0.5 / SETTING["dim"] ** 0.25  # so that predictions vary as much as ratings do
    random = Factors(*(torch.randn(len(t), SETTING["dim"]) * size for t in (trained.u, trained.v)))
    sigma = signs(len(on.value), SIGNS)
    found = {}
    for name, at in (("trained model", trained), ("random parameters", random)):
        all_sums = np.array([sums(smoothed(at, on, p), sigma) for p in PROBABILITIES])
        found[name] = all_sums / all_sums[0].mean()
    rows = torch.from_numpy(np.random.default_rng(0).permutation(len(on.value))[:SAMPLE])
    few = Ratings(on.user[rows], on.item[rows], on.value[rows])
    few_signs = signs(len(rows), ASCENTS, seed=1)
    tops = [[worst(few, s, p, len(trained.u), len(trained.v), 10) for s in few_signs] for p in PROBABILITIES]
    found["worst parameters found"] = np.array(tops) / np.mean(tops[0])
    return found


def bound(data: cr.Dataset) -> list[list[str]]:
    """The terms of R <= S_n + B + E, per rating, of models trained with SSE of each probability."""
    split = cr.holdout(data, test=0.2, valid=0, seed=0)
    rows = []
    for p in TRAINED:
        model = cr.MF(**SETTING, sse_user=p, sse_item=p).fit(split.train)
        at = Factors.of(model)
        train, test = (Ratings.of(part, model.mean_) for part in (split.train, split.test))
        R_n, R = (float(smoothed(at, on, 0).mean()) for on in (train, test))
        S_n, S = (float(smoothed(at, on, p).mean()) for on in (train, test))
        B, E = abs(R - S), abs(S - S_n)
        rows.append([f"{p:g}", *(f"{x:.4f}" for x in (R_n, S_n, R, B, E, S_n + B + E)), f"{R - R_n:.4f}"])
    return rows


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"{', '.join(PARTS)}; all of them by default; page: only the page again",
    )
    given = words.parse_args().parts or list(PARTS)
    root = Path(os.environ.get("CORANK_DATA") or ROOT.parent / "shared" / "data")
    data = cr.datasets.load("ml-1m", root=root)
    for part in given if given != ["page"] else []:
        found: Any
        if part == "ratios":
            found = {name: x.tolist() for name, x in simulation(data, cr.MF(**SETTING).fit(data)).items()}
        elif part == "bound":
            found = bound(data)
        else:
            found = sse_pictures.write_embeddings(root, PAGE.with_name("sse-embeddings.svg"))
        KEPT.mkdir(parents=True, exist_ok=True)
        write_text(KEPT / f"{part}.json", json.dumps(found) + "\n")
    ratios, terms, spread = (json.loads((KEPT / f"{part}.json").read_text("utf-8")) for part in PARTS)
    arrays = {name: np.array(x) for name, x in ratios.items()}
    write_text(PAGE.with_name("sse-rademacher.svg"), sse_pictures.ratios(PROBABILITIES, arrays) + "\n")
    write_text(PAGE, page(arrays, terms, spread))


def page(found: dict[str, np.ndarray], terms: list[list[str]], spread: list[list[str]]) -> str:
    head = ["p", *found]
    ratios = [
        [f"{p:g}", *(f"{values[at].mean():.3f}" for values in found.values())] for at, p in enumerate(PROBABILITIES)
    ]
    return TEXT.format(
        ratios=_table(head, ratios),
        terms=_table(["p", "R_n", "S_n", "R", "B", "E", "S_n + B + E", "R - R_n"], terms),
        spread=_table(["table", "SSE", "variance of all", "rare half", "frequent half", "3 components"], spread),
        signs=SIGNS,
        ascents=ASCENTS,
        steps=STEPS,
        sample=f"{SAMPLE:,}",
        radius=RADIUS,
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])


TEXT = """# The theory of SSE, measured

Chapter 5 bounds the risk of a model that is trained with stochastic shared embeddings (its first theorem) and
simulates a part of the bound on MovieLens-1M. Here the same is computed for matrix factorisation, where the loss
averaged over all replacements has a closed form, so that no replacement has to be drawn.

## Rademacher complexity

The empirical Rademacher complexity is the mean, over vectors of random signs, of the largest |sum of sign times
loss| over all parameters. SSE replaces the loss of each rating by its average over replacements. The table has the
ratio with and without SSE, for users and items replaced with probability p each, on all ratings of MovieLens-1M
({signs} vectors of signs) for two fixed sets of parameters (without the supremum, as in the dissertation's figure); and
on {sample} of the ratings for the largest value that gradient ascent finds ({ascents} vectors of signs, {steps}
steps from one start for either sign, rank 10, vectors no longer than {radius}): a lower bound of the supremum.

{ratios}

![Ratio of the sums of signed losses with and without SSE](sse-rademacher.svg)

The supremum falls steadily: with half of the users and half of the items replaced, the worst parameters that were
found reach about a quarter of what they reach without SSE. This is what the bound needs. For fixed parameters there
are two answers. Random ones, whose losses vary without reason, are averaged out down to about 0.7. The losses of a
trained model are small, and replacements make them larger, so the same sum grows: the figure of the dissertation
falls with p, which here holds for random parameters only (its parameters are not stated).

## The bound on trained models

The theorem's decomposition is R <= S_n + B + E: R is the risk, S_n the training loss averaged over replacements, B
= |R - S| the bias that replacements bring, E = |S - S_n| the excess risk under replacements, which is what the
Rademacher complexity bounds. Here R and S are estimated on a held-out fifth of MovieLens-1M, for MF of rank 20 with
weak regularisation, trained with probability p on users and items; mean squared errors per rating. R - R_n is the
gap of overfitting.

{terms}

Larger p moves the model from excess risk E to bias B, as the theorem says: E and the gap R - R_n fall throughout, B
grows about in proportion to p. The risk itself is lowest at p = 0.1 of these six (one split, one seed, no setting
tuned for any row; MF with more regularisation needs less SSE). The bound S_n + B + E grows with p all the same: it
is loose by about 2 B, since here S is larger than R and so the bias is counted twice. It explains why SSE can help;
it does not choose p.

## Embeddings with and without SSE

The dissertation shows embeddings of 50 dimensions by their first three principal components, which contract with
SSE; its network, data and graph are not stated. Here: MF on the users of MovieLens-1M with fewer than 60 ratings,
with its graphs of age groups and common actors; and SASRec on MovieLens-100K. All panels of a row have one scale;
colours are frequency, dark = the most frequent third.

![First two principal components of embeddings without SSE, with SSE-SE and with SSE-Graph](sse-embeddings.svg)

The total variance of the vectors, that of the rarer and of the more frequent half of the rows, and the share of the
first three components:

{spread}

With SSE the vectors contract: their variance falls by more than a third in MF, for rare and frequent rows alike,
and more in SASRec, mostly for its rare items. Without SSE, SASRec pushes its rare items together into one place far
from all others (the light group at the right edge), where the loss has put whatever is almost never a target; with
SSE they stay among the others. The graphs of age groups and actors change next to nothing beyond SSE-SE at this p.
In MF the pictures do not show the two clusters of the dissertation's figure.

Everything on this page is written by

```bash
python -m benchmarks.sse_theory
```

"""


if __name__ == "__main__":
    main()
