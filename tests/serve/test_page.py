"""The page in a real browser: find, type, compare, filter, give feedback; by keyboard, on a phone, in the dark."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

import corank as cr
from service_tools import TOKEN, ServiceProcess, bearer

sync_api = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    path = next((found for found in map(shutil.which, BROWSERS) if found), None)
    if path is None:
        pytest.skip("Chromium is not here: install it (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="module")
def folder(model_files, tmp_path_factory) -> Path:
    """Models with genres and years, and a comparison, one of whose names is an attack."""
    folder = tmp_path_factory.mktemp("page")
    for name in ("a", "b"):
        model = cr.load(model_files / f"{name}.corank")
        table = {
            "item": list(range(30)),
            "title": [f"{'Even' if i % 2 == 0 else 'Odd'} Film {i}" for i in range(28)] + [ATTACK, "Film, with comma"],
            "genre": ["Comedy|Drama" if i % 3 else "Horror" for i in range(30)],
            "year": [1970 + i for i in range(30)],
        }
        model.with_items(table).save(folder / f"{name}.corank")
    (folder / "results").mkdir()
    (folder / "results" / "results.json").write_text(json.dumps(RESULTS))
    (folder / "results" / "report.html").write_text("<!DOCTYPE html><title>r</title><h1>Figures</h1>")
    return folder


ATTACK = "<img src=x onerror=alert(1)> Film"
RESULTS = {
    "name": "toy",
    "split": "leave-last-out",
    "protocol": "full ranking",
    "metrics": ["ndcg@10"],
    "verdict": "a ranks best.",
    "rows": [
        {
            "label": label,
            "best": n == 0,
            "oracle": False,
            "metrics": {"ndcg@10": {"mean": 0.5 - 0.1 * n, "low": 0.4, "high": None if n else 0.6}},
            "fit_seconds": 0.2,
            "against_best": {"p": 0.03} if n else None,
        }
        for n, label in enumerate(["a", "<script>b</script>"])
    ],
}


@pytest.fixture(scope="module")
def service(folder):
    words = ("--model", "b=b.corank", "--share", "b=0.5", "--results", "results")
    with ServiceProcess(folder, *words) as running:
        yield running


@pytest.fixture
def page(browser, service, request) -> Any:
    """A page whose scripts must not fail, and which must not ask any other host."""
    options = getattr(request, "param", {})
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    made = context.new_page()
    trouble: list[str] = []
    made.on("pageerror", lambda why: trouble.append(str(why)))
    made.on("console", lambda line: trouble.append(line.text) if "Content Security" in line.text else None)
    made.on("request", lambda one: trouble.append(one.url) if not one.url.startswith(service.url) else None)
    made.on("dialog", lambda dialog: trouble.append("a script of the data was run"))
    made.goto(service.url)
    made.wait_for_selector("body[data-ready]")
    yield made
    assert not trouble
    context.close()


def titles(page: Any, column: int = 0) -> list[str]:
    return page.locator("#lists > div").nth(column).locator(".title").all_inner_texts()


def like(page: Any, *texts: str) -> None:
    for n, text in enumerate(texts):
        page.fill("#liked", text)
        page.wait_for_selector("#liked-list:not([hidden]) li")
        page.locator("#liked-list li", has_text=text).first.click()
        page.wait_for_function("n => document.querySelectorAll('#chosen li').length === n", arg=n + 1)
    page.wait_for_selector("#lists .title")


def serious(page: Any) -> list[str]:
    """What axe-core finds that keeps people out."""
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in found if one["impact"] in ("serious", "critical")
    ]


def test_typed_titles_get_recommendations_with_reasons(page):
    like(page, "Even Film 2", "Even Film 4", "Even Film 6")
    assert len(titles(page)) == 10
    assert all(title.startswith("Even") for title in titles(page)[:4])
    first = page.locator("#lists li.both, #lists ol > li").first
    assert re.search(r"because of\s*Even Film \d \d+ %", first.inner_text())
    first.hover()
    marked = page.locator("#history li.speaks")
    assert 1 <= marked.count() <= 3
    assert "%" in marked.first.inner_text()
    assert "liked=2&liked=4&liked=6" in page.url
    page.get_by_label("Remove Even Film 4").click()
    page.wait_for_function("() => document.querySelectorAll('#chosen li').length === 2")


def test_an_address_can_be_shared(page, service):
    page.goto(f"{service.url}/#/person?user=7")
    page.wait_for_selector("#lists .title")
    before = titles(page)
    assert page.input_value("#user") == "7"
    assert "History of user 7" in page.inner_text("#history-title")
    page.reload()
    page.wait_for_selector("#lists .title")
    assert titles(page) == before


def test_by_keyboard_alone(page):
    """Tab to the field, type, choose with the arrows; Escape closes; the skip link is the first stop."""
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#user")
    page.keyboard.type("1")
    page.wait_for_selector("#user-list:not([hidden]) li >> text=10")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("#user", "aria-activedescendant") == "user-list-1"
    page.keyboard.press("Escape")
    assert page.get_attribute("#user", "aria-expanded") == "false"
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("#user-list:not([hidden]) li")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#lists .title")
    assert page.input_value("#user") == "1"
    page.locator("#lists .title").first.focus()
    assert page.locator("#history li.speaks").count() >= 1


def test_two_models_side_by_side(page):
    like(page, "Odd Film 3", "Odd Film 5")
    page.click("#options summary")
    page.select_option("#second", "b")
    page.wait_for_selector("#agree:not([hidden])")
    left, right = titles(page, 0), titles(page, 1)
    shared = set(left) & set(right)
    assert f"a and b agree on {len(shared)} of 10 items" in page.inner_text("#agree")
    assert set(page.locator("#lists > div").first.locator("li.both .title").all_inner_texts()) == shared


def test_filters(page, service):
    like(page, "Even Film 2")
    page.click("#options summary")
    page.select_option("#filter-genre", "Horror")
    page.wait_for_function(
        "() => [...document.querySelectorAll('#lists .more')].some(e => e.innerText.includes('Horror'))"
    )
    page.fill("#filter-year-min", "1985")
    page.locator("#filter-year-min").blur()
    page.wait_for_function("() => document.querySelectorAll('#lists .title').length <= 6")
    shown = page.locator("#lists li > .more").all_inner_texts()
    assert all("Horror" in text for text in shown if "because" not in text)
    page.fill("#filter-year-min", "2100")
    page.locator("#filter-year-min").blur()
    page.wait_for_selector("text=Nothing is left to recommend")


def test_feedback_changes_the_list(page, service):
    page.goto(f"{service.url}/#/person?user=9")
    page.wait_for_selector("#lists .title")
    assert page.locator("#lists button", has_text="Like").count() == 0  # not without the token
    page.click("#access summary")
    page.fill("#token", TOKEN)
    page.click("#login button")
    page.wait_for_selector("#lists button >> text=Like")
    first, second = titles(page)[:2]
    page.get_by_label(f"Like: {first}").click()
    page.wait_for_selector(f"#history li.new >> text={first}")
    assert first not in titles(page)
    page.get_by_label(f"Not for me: {second}").click()
    page.wait_for_function("t => document.getElementById('message').innerText.includes(t)", arg=second)
    assert second not in titles(page)
    assert f"{first}" in page.inner_text("#history")


def test_a_user_who_is_known_by_feedback_alone(page, service):
    """The id is typed: it has no suggestion."""
    body = {"events": [{"user": 9001, "item": item} for item in (2, 4)]}
    assert service.client.post("/feedback", json=body, headers=bearer()).status_code == 200
    page.fill("#user", "9001")
    page.keyboard.press("Enter")
    page.wait_for_selector("#lists .title")
    assert page.locator("#history li.new").all_inner_texts()[0].startswith("Even Film 4")
    assert titles(page)[0].startswith("Even")


def test_an_item_and_its_neighbours(page, service):
    page.click("nav >> text=Items")
    page.fill("#one", "even film 12")
    page.wait_for_selector("#one-list:not([hidden]) li")
    page.keyboard.press("Enter")
    page.wait_for_selector("#neighbours li")
    assert page.inner_text("#about h3") == "Even Film 12"
    assert "1982" in page.inner_text("#about")
    near = page.locator("#neighbours .title")
    assert near.count() == 12
    name = near.first.inner_text()
    near.first.click()
    page.wait_for_function("t => document.querySelector('#about h3').innerText === t", arg=name)


def test_text_of_the_data_is_text(page, service):
    """Titles and labels of the leaderboard that look like HTML are shown, not read."""
    page.goto(f"{service.url}/#/item?item=28")
    page.wait_for_function("() => document.querySelector('#about h3')")
    assert page.inner_text("#about h3") == ATTACK
    page.click("nav >> text=Comparison")
    assert "<script>b</script>" in page.inner_text("#board table")


def test_the_comparison(page):
    page.click("nav >> text=Comparison")
    assert page.inner_text("#board .verdict") == "a ranks best."
    table = page.inner_text("#board table")
    assert "0.5000" in table
    assert "0.030" in table
    page.click("#figures summary")
    frame = page.frame_locator("#figures iframe")
    frame.locator("h1").wait_for()
    assert frame.locator("h1").inner_text() == "Figures"


def test_traffic(page, service):
    for user in range(10, 20):
        service.client.get(f"/recommend?user={user}&k=5")
    page.click("nav >> text=Traffic")
    page.wait_for_function("() => document.getElementById('rate').innerText !== '–'", timeout=15_000)
    assert "ms" in page.inner_text("#p99")
    assert page.inner_text("#failed") == "0"
    rows = page.locator("#arms tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == ["a", "b"]
    shown = sum(int(row.split("\t")[2]) for row in rows)
    assert shown == 50  # what this page shows is no part of the comparison


def test_where_reading_needs_the_token_the_page_asks_for_it(browser, folder):
    """Without the token the page holds neither models nor figures; with it, all views work, the report's frame too."""
    words = ("--host", "0.0.0.0", "--results", "results", "--store", "protected.sqlite")
    with ServiceProcess(folder, *words) as running:
        without = httpx.Client(base_url=running.url)
        assert "a ranks best" not in without.get("/").text
        assert [without.get(path).status_code for path in ("/", "/board", "/report", "/models")] == [200, 401, 401, 401]
        page = browser.new_page()
        page.goto(running.url)
        page.wait_for_selector("#message:not([hidden])")
        assert "token" in page.inner_text("#message")
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_selector("body[data-ready]")
        like(page, "Even Film 2")
        page.click("nav >> text=Comparison")
        assert page.inner_text("#board .verdict") == "a ranks best."
        page.click("#figures summary")
        page.frame_locator("#figures iframe").locator("h1").wait_for()
        page.close()
        without.close()


def test_mistakes_are_sentences(page, service):
    page.goto(f"{service.url}/#/person?user=4711")
    page.wait_for_selector("#message:not([hidden])")
    assert "unknown user 4711" in page.inner_text("#message")
    assert page.get_attribute("#message", "role") == "status"


@pytest.mark.parametrize("page", [{}, {"color_scheme": "dark"}], indirect=True, ids=["light", "dark"])
def test_nothing_keeps_people_out(page, service):
    """axe-core finds nothing serious, in any view."""
    assert not serious(page)
    like(page, "Even Film 2", "Odd Film 3")
    page.click("#options summary")
    page.select_option("#second", "b")
    page.wait_for_selector("#agree:not([hidden])")
    assert not serious(page)
    for view in ("item?item=3", "board", "traffic"):
        page.goto(f"{service.url}/#/{view}")
        page.wait_for_selector(f"#{view.split('?')[0]}:not([hidden])")
        page.wait_for_timeout(300)
        assert not serious(page), view


@pytest.mark.parametrize("page", [{"viewport": {"width": 360, "height": 740}}], indirect=True, ids=["phone"])
def test_on_a_phone_nothing_is_cut_off(page, service):
    for view in ("person?user=7", "item?item=3", "board", "traffic"):
        page.goto(f"{service.url}/#/{view}")
        page.wait_for_timeout(400)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
        assert page.evaluate("new Set([...document.querySelectorAll('nav a')].map(e => e.offsetTop)).size") == 1, view
    page.goto(f"{service.url}/#/person?user=7")
    page.wait_for_selector("#lists .title")
    small = page.evaluate(
        "[...document.querySelectorAll('button, input, select, nav a')].filter(e => e.offsetParent)"
        ".filter(e => e.getBoundingClientRect().height < 24).map(e => e.outerHTML.slice(0, 80))"
    )
    assert not small


def test_the_page_needs_no_other_host(service):
    text = service.client.get("/").text
    files = [service.client.get(f"/static/{name}").text for name in ("page.js", "page.css", "person.js", "api.js")]
    for one in (text, *files):
        assert not re.findall(r"https?://(?!www\.w3\.org)", one)
    assert not re.search(r"<script(?![^>]*src=)", text)
    assert "style=" not in text
    assert service.client.get("/static/../app.py").status_code == 404
    assert service.client.get("/static/nothing.js").status_code == 404
