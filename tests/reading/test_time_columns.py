"""Times that are detected by how their column is named and what it holds."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import corank as cr
from corank.reading.tables import guess_columns
from corank.reading.time_columns import are_times, named_like_time

SECONDS = ["1700000000", "1700000500", "1700000900", "1700001200"]
DATES = ["2024-01-31", "2024-02-01 10:00", "2024-02-01T11:00:00Z", "2024-02-03"]


def table(folder: Path, name: str, times: list[str]) -> Path:
    """Two users with two items each, and a column of that name."""
    path = folder / "t.csv"
    rows = zip(["a", "a", "b", "b"], ["x", "y", "x", "y"], times, strict=True)
    path.write_text(f"user,item,{name}\n" + "".join(",".join(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    "name",
    [
        *("bought_at", "boughtAt", "Order Date", "purchase_date", "clickTime", "event_time_utc", "listened_on"),
        *("ordertime", "request.timestamp", "play_ts", "TimeStamp_ms", "bought_at:float"),
    ],
)
def test_names_of_times(name: str) -> None:
    assert named_like_time(name)


@pytest.mark.parametrize(
    "name", ["birth_date", "release_date", "releaseDate", "updated_at", "expires_at", "chat", "outdated", "price", "ms"]
)
def test_names_of_other_things(name: str) -> None:
    assert not named_like_time(name)


@pytest.mark.parametrize("times", [SECONDS, [f"{t}000" for t in SECONDS], [f"{t}.5" for t in SECONDS], DATES])
def test_a_column_like_bought_at_is_the_time(tmp_path: Path, times: list[str]) -> None:
    path = table(tmp_path, "bought_at", times)
    assert guess_columns(path).roles() == {"user": "user", "item": "item", "time": "bought_at"}
    assert cr.read_csv(path).time is not None
    assert guess_columns(path, time="").time is None


def test_days_without_dashes_are_times(tmp_path: Path) -> None:
    path = table(tmp_path, "order_date", ["20240131", "20240201", "20240203", "20240204"])
    assert guess_columns(path).time == "order_date"


@pytest.mark.parametrize(
    "values",
    [
        ["12", "30", "7", "90"],  # durations
        ["Oslo", "Rome", "Rome", "Oslo"],  # places
        ["", "1700000000", "", "1700000500"],  # most have none, as with returned_at
        ["1700000000", "1700000000", "1700000500", "1700000500"],  # one per user
        ["1700000000", "1700000500", "1700000000", "1700000500"],  # one per item
    ],
)
def test_a_column_like_bought_at_without_times_is_none(tmp_path: Path, values: list[str]) -> None:
    assert guess_columns(table(tmp_path, "bought_at", values)).time is None


def test_a_well_known_name_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("user,item,shown_at,timestamp\n" + "".join(f"{i % 3},{i},17000000{i}0,{i}\n" for i in range(9)))
    assert guess_columns(path).time == "timestamp"


def test_one_bad_time_among_many_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    times = [*(f"2024-01-{day:02}" for day in range(1, 29)), "soon"]
    path.write_text("user,item,bought_at\n" + "".join(f"{i % 3},{i % 7},{t}\n" for i, t in enumerate(times)))
    with pytest.raises(
        cr.CorankError, match=r"line 30 of column 'bought_at' of .* is 'soon', which is not a number or a date"
    ):
        cr.read_csv(path)


def test_times_of_a_parquet_file(tmp_path: Path) -> None:
    frame = pl.read_csv(table(tmp_path, "bought_at", ["2024-01-31", "2024-02-01", "2024-02-02", "2024-02-03"]))
    for times in (frame["bought_at"], frame["bought_at"].str.to_date(), pl.Series("bought_at", SECONDS).cast(int)):
        frame.with_columns(times).write_parquet(tmp_path / "t.parquet")
        assert guess_columns(tmp_path / "t.parquet").time == "bought_at"
        assert cr.read_parquet(tmp_path / "t.parquet").time is not None
    frame.with_columns(bought_at=pl.Series([[1], [2], [3], [4]])).write_parquet(tmp_path / "t.parquet")
    assert guess_columns(tmp_path / "t.parquet").time is None


def test_days_count_only_where_the_name_says_so() -> None:
    assert are_times(["20240131"], days=True)
    assert not are_times(["20240131"])
    assert not are_times([])


def test_names_of_counts_are_names_of_values(tmp_path: Path) -> None:
    for name in ("qty", "visits", "purchases", "check-ins"):
        path = table(tmp_path, name, ["1", "2", "1", "9"])
        assert guess_columns(path).value == name
        assert cr.read_csv(path).values == "counts"
