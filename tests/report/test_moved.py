"""Two versions of a page: what moved is named, and what rounding explains is not."""

from __future__ import annotations

from pathlib import Path

import pytest

import corank as cr
from corank.report import write_markdown
from corank.report.moved import compare_pages

PAGE = """# A page

## Leaderboard

|  | NDCG@10 | gain | published | p | effect | better / worse | fit time |
|---|---|---|---|---|---|---|---|
| SASRec sasrec | 0.0608 \\[0.0582, 0.0634\\] | 100% | NDCG@10 0.0531 | best |  |  | 525 s |
| a \\| b wmf | 0.0413 \\[0.0391, 0.0434\\] | 12% |  | &lt;0.001 \\*\\*\\* | -0.11 | 4% / 8% | 15 s |

## Hyper-parameters

|  | hyper-parameters | seed | how they were chosen |
|---|---|---|---|
| a \\| b | dim=8, reg=0.490664 | 0 | 3 tried by hand |

## Evaluation setup

|  |  |
|---|---|
| Protocol | full ranking of 12,101 items |
| Split | leave-last-out: 153,776 training rows, 22,363 test |
| Evaluated on | users: 22,363, fingerprint 8cd4aa25a296f417 |
| Time | 26 s in total |
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0.0608 ", "0.0609 ", None),  # one in the last digit
        ("0.0608 ", "0.0610 ", "SASRec sasrec: NDCG@10 0.0608 [0.0582, 0.0634] -> 0.0610 [0.0582, 0.0634]"),
        ("0.0634", "0.0734", "SASRec sasrec: NDCG@10"),
        ("0.0413 ", "– ", "a | b wmf: NDCG@10"),
        ("| 12% |", "| 13% |", None),
        ("| 12% |", "| 15% |", "a | b wmf: gain 12% -> 15%"),
        ("4% / 8%", "4% / 10%", "better / worse"),
        ("&lt;0.001 \\*\\*\\*", "0.012 \\*", "p <0.001 *** -> 0.012 *"),
        ("&lt;0.001 \\*\\*\\*", "0.002 \\*\\*", None),
        ("525 s", "1 s", None),
        ("0.0531", "0.9", None),  # not ours
        ("3 tried", "4 tried", None),
        ("reg=0.490664", "reg=0.490665", None),
        ("reg=0.490664", "reg=0.5", "a | b: hyper-parameters"),
        ("dim=8, ", "dim=8, steps=3, ", None),  # of a later version
        ("153,776", "153,777", "Split"),
        ("8cd4aa25a296f417", "8cd4aa25a296f418", "Evaluated on"),
        ("12,101 items", "12,101 items, binary gains", "Protocol"),
        ("| SASRec sasrec", "| SASRec 2 sasrec", "SASRec sasrec: NDCG@10 is gone"),
        ("26 s in total", "3 min in total", None),
    ],
)
def test_what_moved(old: str, new: str, expected: str | None) -> None:
    compared, moved = compare_pages(PAGE, PAGE.replace(old, new))
    assert compared > 5
    assert bool(moved) == (expected is not None), [str(one) for one in moved]
    if expected:
        assert any(expected in str(one) for one in moved)


def test_rows_of_torch_may_move_by_a_hundredth() -> None:
    other = PAGE.replace("0.0608 ", "0.0613 ")
    assert compare_pages(PAGE, other)[1]
    assert not compare_pages(PAGE, other, ["SASRec"])[1]
    assert compare_pages(PAGE, other, ["SAS"])[1]
    assert compare_pages(PAGE, PAGE.replace("0.0608 ", "0.0527 "), ["SASRec"])[1]  # what refit changed on Beauty


def test_headings_of_earlier_pages_are_understood() -> None:
    old = PAGE.replace("## Hyper-parameters", "## Settings").replace("## Evaluation setup", "## Method")
    assert compare_pages(old, PAGE) == compare_pages(PAGE, PAGE)


def test_a_page_of_ours_equals_itself(tmp_path: Path) -> None:
    data = cr.synthetic.realistic(users=60, items=60, rows=900, groups=3, friends=3).data
    texts = []
    for name in ("one", "two"):
        results = cr.Experiment(data=data, models=["popularity", "item_knn"], metrics=["recall@5", "ndcg@5"]).run()
        write_markdown(results, tmp_path / f"{name}.md")
        texts.append((tmp_path / f"{name}.md").read_text("utf-8"))
    compared, moved = compare_pages(*texts)
    assert not moved
    assert compared > 20
