"""The pictures: well-formed, the same twice, with every name in them and none over another."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable

import matplotlib
import numpy as np
import pytest

from corank.answering.explain import Explanation
from corank.report import data_charts, model_charts, palette, reason_charts
from corank.report.svg import WIDTH, draw, log_ticks, short
from results import HOSTILE

NAMES = ["wmf", "ease", "item_knn", "popularity", HOSTILE, "a name that goes on and on and on"]
LOOKS = palette.styles([*NAMES, "oracle"], ["oracle"])
RNG = np.random.default_rng(0)
CURVES = {name: np.linspace(0.01, 0.2 + 0.001 * i, 10) for i, name in enumerate(NAMES)}  # ends that nearly touch
POINTS = {name: (0.1 * (1 + 0.01 * i), 0.05 + 0.0005 * i) for i, name in enumerate(NAMES)}  # points that nearly touch
MARKS = [model_charts.Mark("oracle", 0.3, 0.28, 0.32, True), *(model_charts.Mark(n, 0.1, 0.09, 0.11) for n in NAMES)]
BARS = {name: (0.2, 0.3, 0.5) for name in NAMES}
THREE = ("top", "middle", "rest"), ("#0b4f7a", "#5aa2cf", "#c4dcec")
COUNTS = (RNG.pareto(1.1, 500) * 10 + 1).astype(int)
VALUES = {name: RNG.random(300) for name in NAMES}
WHY = Explanation(
    user=7,
    items=[1, 2],
    scores=[0.5, 0.1],
    kind="attention",
    contributions=[[(10, 0.5), (11, 0.2), (12, -0.3)], [(12, 0.0), (10, 0.0), (11, 0.0)]],
    titles={10: "wmf", 11: HOSTILE, 1: "a name that goes on and on and on"},
    history=[10, 11, 12],
    attention=np.tri(3, dtype=np.float32) / 3,
)

PICTURES: dict[str, Callable[[], str]] = {
    "intervals": lambda: model_charts.intervals(MARKS, LOOKS, "NDCG@10"),
    "hit_rates": lambda: model_charts.hit_rates(CURVES, LOOKS),
    "distribution": lambda: model_charts.distribution(VALUES, LOOKS, "NDCG@10", True),
    "errors": lambda: model_charts.distribution(VALUES, LOOKS, "RMSE", False),
    "scatter": lambda: model_charts.scatter(
        POINTS, LOOKS, "cost", "time", "NDCG@10", seconds=True, ceiling=("oracle", 0.3)
    ),
    "groups": lambda: model_charts.by_group(
        ["1", "2-9"], {n: c[-2:] for n, c in CURVES.items()}, LOOKS, "rows", "NDCG@10"
    ),
    "stacked_bars": lambda: model_charts.stacked_bars(BARS, *THREE, "bias", gap=2),
    "concentration": lambda: data_charts.concentration(COUNTS),
    "activity": lambda: data_charts.activity(COUNTS),
    "ratings": lambda: data_charts.ratings(RNG.choice([0.5, 1, 5], 100)),
    "plays": lambda: data_charts.ratings(COUNTS),
    "dates": lambda: data_charts.over_time(RNG.integers(1.2e9, 1.5e9, 900), RNG.integers(1.4e9, 1.5e9, 90)),
    "steps": lambda: data_charts.over_time(np.arange(900), np.arange(90)),
    "reasons": lambda: reason_charts.reasons(WHY),
    "attention": lambda: reason_charts.attention(WHY),
}
NAMED = ("intervals", "hit_rates", "distribution", "errors", "scatter", "groups", "stacked_bars")

Box = tuple[float, float, float, float]


def texts(svg: str) -> list[tuple[str, Box]]:
    """Each text with the box it roughly takes (left, top, right, bottom)."""
    out = []
    for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        words, style = "".join(node.itertext()), node.get("style", "")
        moved = re.search(r"translate\(([-\d.]+) ([-\d.]+)\)", node.get("transform", ""))
        x, y = map(float, moved.groups()) if moved else (float(node.get("x", 0)), float(node.get("y", 0)))
        width = 4.6 * len(words)
        left = x - (width / 2 if "middle" in style else width if "end" in style else 0)
        if "rotate(-90" not in node.get("transform", ""):
            out.append((words, (left, y - 6, left + width, y)))
    return out


@pytest.mark.parametrize("name", PICTURES)
def test_well_formed_and_self_contained(name: str) -> None:
    svg = PICTURES[name]()
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-label")
    assert "width" not in root.attrib  # the page decides
    inside = re.sub(r'xmlns(:\w+)?="[^"]*"', "", svg)
    assert "http" not in inside
    assert "<metadata" not in svg
    assert "DejaVu" not in svg
    ids = re.findall(r' id="([^"]*)"', svg)
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'(?:href="#|url\(#)([^")]*)', svg))
    assert used <= set(ids)


@pytest.mark.parametrize("name", [n for n in PICTURES if n not in ("ratings", "dates")])
def test_same_twice(name: str) -> None:
    assert PICTURES[name]() == PICTURES[name]()


@pytest.mark.parametrize("name", NAMED)
def test_every_model_is_named_and_escaped(name: str) -> None:
    svg = PICTURES[name]()
    shown = [words for words, _ in texts(svg)]
    for label in NAMES:
        start = short(label, 14)[:-1]
        assert any(words.startswith(start) for words in shown), label
    assert "<script" not in svg
    assert "$" in short(HOSTILE, 99)  # and it was not read as a formula


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_covers_another_or_leaves_the_picture(name: str) -> None:
    svg = PICTURES[name]()
    width, height = (float(v) for v in (ET.fromstring(svg).get("viewBox") or "").split()[2:])
    assert width == pytest.approx(72 * WIDTH)
    boxes = texts(svg)
    for words, (left, top, right, bottom) in boxes:
        assert left > -6, words
        assert right < width + 6, words
        assert top > -6, words
        assert bottom < height + 6, words
    for i, (one, a) in enumerate(boxes):
        for other, b in boxes[:i]:
            wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
            assert wide < 3 or high < 1, f"{one!r} covers {other!r}"


def test_nothing_global_is_touched() -> None:
    before = dict(matplotlib.rcParams)
    PICTURES["hit_rates"]()
    assert dict(matplotlib.rcParams) == before
    code = "import sys, numpy as np; from corank.report import data_charts; assert 'matplotlib' not in sys.modules; "
    code += "data_charts.concentration(np.arange(9)); assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_styles_depend_on_the_names_alone() -> None:
    assert palette.styles(["b", "a"]) == palette.styles(["a", "b"])
    many = palette.styles([f"m{i:02}" for i in range(16)])
    assert len(set(many.values())) == 16
    assert palette.styles(["a", "o"], ["o"])["o"].colour not in {s.colour for s in many.values()}


def test_neutral_colours_follow_the_page() -> None:
    svg = PICTURES["activity"]()
    assert "var(--muted, #667080)" in svg
    assert not re.search(r": #667080", svg)


def test_figures_in_the_concentration_picture() -> None:
    counts = np.r_[np.full(10, 91), np.ones(90, int)]  # 10 of 100 items have 910 of 1000 interactions
    words = [w for w, _ in texts(data_charts.concentration(counts))]
    assert "top 10%: 91% of the interactions" in words
    assert "top 1%: 9% of the interactions" in words


@pytest.mark.parametrize("counts", [np.array([1]), np.array([0, 3]), np.array([2, 2, 2])])
def test_tiny_data(counts: np.ndarray) -> None:
    for svg in (data_charts.concentration(counts), data_charts.activity(counts), data_charts.ratings(counts)):
        ET.fromstring(svg)
    ET.fromstring(data_charts.over_time(np.array([5]), np.array([5])))
    ET.fromstring(model_charts.distribution({"wmf": np.zeros(3)}, LOOKS, "NDCG@10", True))
    ET.fromstring(model_charts.hit_rates({"wmf": np.zeros(10)}, LOOKS))
    ET.fromstring(model_charts.scatter({"wmf": (1e-4, 0.0)}, LOOKS, "cost", "time", "NDCG@10", seconds=True))
    ET.fromstring(model_charts.by_group(["1", "2"], {"wmf": np.array([0.1, np.nan])}, LOOKS, "rows", "NDCG@10"))


@pytest.mark.parametrize("ends", [(0.1, 0.11), (2.1, 2.2), (1, 10), (0.003, 4000)])
def test_ticks_of_any_range(ends):
    """A range without a round number in it has a tick, too."""

    def paint(ax):
        ax.plot(ends, [1, 2])
        ax.set_xscale("log")
        ax.set_xlim(*ends)
        log_ticks(ax, lambda s: f"{s:g} s")

    assert " s<" in draw("ticks", paint, "ticks", 2.0)
