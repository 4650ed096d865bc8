"""The viewer in a real browser: every page, search, slider, filters, keyboard, themes, hostile texts, and how fast."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from browsing import Watched, browser
from viewing import hub_store, small_run, viewing

from kbgym.trace.folder import StoreFolder
from kbgym.training.run import Settings
from kbgym.worlds.people import generate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def chromium() -> Iterator[object]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def served(run: Path, hostile: Path) -> Iterator[str]:
    with viewing(run, hostile) as url:
        yield url


@pytest.fixture
def page(chromium, served) -> Iterator[Watched]:
    context = chromium.new_context(viewport={"width": 1280, "height": 860}, accept_downloads=True)
    context.set_default_timeout(60_000)
    watched = Watched(context.new_page(), served)
    yield watched
    watched.checked()
    context.close()


def test_every_page_says_what_one_sees(page):
    for where, title in (("/", "Overview"), ("/store", "Store"), ("/questions", "Questions"), ("/compare", "Compare")):
        page.open(where)
        assert page.text("h1") == title
        assert len(page.text(".lede")) > 40
    assert "no language model" in page.open("/").text(".agent")
    for heading in ("Flat against trained", "Cost and accuracy", "Learning curves", "Retention by class", "Spend"):
        assert heading in page.text()
    page.open("/live")
    assert "24 of 24 questions" in page.text()


def test_only_an_interval_that_excludes_the_point_is_bold(page):
    classes = """import('/assets/dom.js').then(({ sureClass }) => [
        [0.2, 0.9], [1.1, null], [0, null], [null, null], [0.5, 1.5], [null, 0.5]
    ].map(([low, high]) => sureClass({ low, high }, 1).includes("sure")))"""
    assert page.open("/").page.evaluate(classes) == [True, True, False, False, False, True]


def test_the_menu_changes_the_view_and_the_back_button_returns(page):
    page.open("/?run=small")
    page.page.click("nav >> text=Store")
    page.page.wait_for_selector("#q")
    assert "/store?run=small" in page.page.url
    page.page.go_back()
    page.page.wait_for_selector("text=Flat against trained")


def test_search_is_instant_and_the_slash_key_goes_to_it(page):
    page.open("/store?run=small")
    page.page.keyboard.press("/")
    page.page.keyboard.type("lives in the city of")
    page.page.wait_for_selector(".hits [data-page='4']")
    first = httpx.get(f"{page.url}/api/search?run=small&q=lives+in+the+city+of").json()["hits"][0]
    # Results of the first letters typed may still stand there.
    shown = "text => document.querySelector('.hits li')?.innerText.includes(text)"
    page.page.wait_for_function(shown, arg=first["text"])
    assert first["text"] in page.text(".hits li")
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector(".document")
    assert page.text(".document .sentence") == first["text"]
    assert f"doc={first['id']}" in page.page.url and "q=lives" in page.page.url
    page.open(page.page.url.removeprefix(page.url))
    assert page.text(".document .sentence") == first["text"]


def test_a_link_leads_from_the_index_to_the_step_that_made_it(page, run):
    store = StoreFolder(run).store()
    index = max((record for record in store if record.flag == "authored"), key=lambda record: len(record.links))
    page.open(f"/store?run=small&doc={index.id}")
    assert page.page.locator(".document .links").first.locator("a.id").count() == len(index.links)
    page.page.click(".document .history a >> nth=0")
    page.page.wait_for_selector(".step.chosen")
    assert index.text in page.text(".step.chosen")


def test_the_audit_sorts_by_key_and_mouse_and_saves(page, tmp_path):
    page.open("/store?run=small&tab=audit")

    def degrees() -> list[int]:
        at = [cell.inner_text().strip(" ↓↑") for cell in page.page.locator("table.data thead th").all()].index("Links")
        cells = page.page.locator(f"table.data tbody tr td:nth-child({at + 1})").all_inner_texts()
        return [int(text.replace(",", "")) for text in cells]

    assert degrees() == sorted(degrees(), reverse=True)
    page.page.click("table.data thead >> text=Links")
    assert degrees() == sorted(degrees())
    assert "sort=degree" in page.page.url
    page.page.locator("table.data tbody tr").first.focus()
    page.page.keyboard.press("ArrowDown")
    assert page.page.evaluate("document.activeElement === document.querySelectorAll('table.data tbody tr')[1]")
    with page.page.expect_download() as saved:
        page.page.locator(".sheet:has(table.data) .tools >> text=CSV").click()
    saved.value.save_as(tmp_path / "audit.csv")
    assert len((tmp_path / "audit.csv").read_text().splitlines()) == len(degrees()) + 1
    page.page.keyboard.press("Escape")
    page.page.locator("table.data tbody tr").first.focus()
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector(".document")


def test_filters_narrow_the_questions_and_stay_in_the_address(page):
    page.open("/questions?run=small")
    rows = page.page.locator("table.data tbody tr")
    everything = rows.count()
    page.page.get_by_label("Group").select_option("neither")
    assert 0 < rows.count() < everything
    page.page.get_by_label("Kind", exact=True).select_option(index=1)
    narrowed = rows.count()
    assert "set=neither" in page.page.url and "class=" in page.page.url
    page.open(page.page.url.removeprefix(page.url))
    assert rows.count() == narrowed
    page.page.get_by_label("Outcome").select_option("agent_failed")
    assert "No question fits" in page.text("table.data")


def test_one_question_on_two_stores_side_by_side(page):
    page.open("/questions?run=small")
    page.page.locator("table.data tbody tr").first.focus()
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector(".pass >> nth=1")
    assert "fewer than Flat" in page.text(".headline")
    assert page.page.locator(".pass").count() == 2
    assert page.page.locator(".answer li.evidence").count() > 0
    steps = [int(re.search(r"(\d+) action", text)[1]) for text in page.page.locator(".outcome").all_inner_texts()]
    assert [page.page.locator(f".pass >> nth={side} >> .step").count() for side in (0, 1)] == steps


def test_a_training_step_shows_forward_backward_and_effects(page):
    page.open("/questions?run=small&tab=training")
    page.page.click("table.data thead >> text=Edits")
    page.page.locator("table.data tbody tr").first.locator("a").first.click()
    page.page.wait_for_selector(".effect")
    assert "Forward" in page.text(".pass >> nth=0") and "Backward" in page.text(".pass >> nth=1")


def test_questions_show_the_expected_answer_and_those_before_and_after(page):
    page.open("/questions?run=small")
    assert page.text("table.data thead").split()[:4] == ["Question", "Expected", "Before", "After"]
    shown = page.text("table.data tbody tr")
    assert shown.count("action") == 2 and any(word in shown for word in ("right", "wrong", "partly"))


@pytest.mark.parametrize("where", ["/", "/questions", "/store?q=lives&grouped=1", "/compare"])
def test_every_page_fits_a_phone(page, where):
    page.page.set_viewport_size({"width": 400, "height": 800})
    page.open(where)
    width, seen = page.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert width <= seen


def test_a_question_is_readable_on_a_phone(page):
    """Ids are folded, and a long list of results is."""
    page.page.set_viewport_size({"width": 400, "height": 800})
    page.open("/questions?run=small")
    page.page.locator("table.data tbody tr a").first.click()
    page.page.wait_for_selector(".pass >> nth=1")
    width, height = page.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    assert width <= 400 and height < 10_000
    assert page.page.locator(".answer a.id").count() == 0 < page.page.locator(".answer a.plainlink").count()


def test_search_is_grouped_by_source_page(page):
    page.open("/store?run=small&q=lives")
    assert page.page.locator(".pagehead").count() == 0
    page.page.get_by_label("Group by source page").check()
    page.page.wait_for_selector(".pagehead")


def test_compare_shows_what_was_added(page, run):
    page.open("/compare?run=small")
    added = len(StoreFolder(run).store()) - len(StoreFolder(run).store(0))
    assert f"Added {added}" in page.text()
    page.page.click(".tabs >> text=Relinked")
    page.settled()
    assert "list=relinked" in page.page.url


def test_the_slider_replays_growth_and_a_click_opens_the_document(page, run):
    page.open("/map?run=small").drawn()
    store = StoreFolder(run).store()
    assert f"{store.links:,} links" in page.text(".timeline")
    slider = page.page.locator("input[type=range]")
    slider.focus()
    page.page.keyboard.press("Home")
    assert "0 links" in page.text(".timeline")
    for _ in range(9):
        page.page.keyboard.press("ArrowRight")
    then = StoreFolder(run).store(9)
    assert "Iteration 9" in page.text(".timeline") and f"{then.links:,} links" in page.text(".timeline")
    page.page.wait_for_url("**it=9**")
    with page.page.expect_download() as saved:
        page.page.click(".legend >> text=SVG")
    svg = Path(saved.value.path()).read_text()
    assert svg.count("<circle") == len(then) and svg.count("<line") == then.links
    page.page.keyboard.press("/")
    page.page.keyboard.type(next(record.id for record in then if record.links))
    page.page.wait_for_url("**focus=**")
    box = page.page.locator(".stage").bounding_box()
    for _ in range(60):  # the map takes its time to get there
        page.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.page.wait_for_timeout(500)
        if page.page.locator(".document").count():
            break
    page.page.wait_for_selector(".document")


def test_a_figure_is_saved_with_its_colours(page):
    page.open("/?run=small")
    with page.page.expect_download() as saved:
        page.page.click(".chart .tools >> text=SVG >> nth=0")
    svg = Path(saved.value.path()).read_text()
    assert svg.startswith("<?xml") and "var(" not in svg and "rgb(0, 114, 178)" in svg


def test_hostile_texts_stay_texts(page, hostile):
    id = quote('d9"><img src=x onerror="window.broken=6">')
    places = ["/?run=hostile", "/live?run=hostile", "/questions?run=hostile", "/questions?run=hostile&iteration=2"]
    places += ["/questions?run=hostile&tab=training", "/compare?run=hostile", "/store?run=hostile&tab=audit"]
    places += [f"/questions?run=hostile&set=trained&q={quote('<q1>')}&arms=flat,trained-paper"]
    places += ["/store?run=hostile&q=%3Cscript%3E&doc=d0", "/store?run=hostile&doc=d2", f"/store?run=hostile&doc={id}"]
    places += ["/store?run=%3Cimg%20src=x%20onerror=window.broken=7%3E", "/store?run=hostile&doc=%3Cscript%3E"]
    for where in places:
        page.open(where)
        assert page.page.evaluate("window.broken") is None, where
        assert page.page.locator("main script, main iframe, main img, main svg[onload]").count() == 0, where
        assert page.page.locator("a[href^='javascript:']").count() == 0, where
    page.complaints[:] = [said for said in page.complaints if "404" not in said]  # the two that are not here
    page.open("/store?run=hostile&doc=d0")
    assert page.text(".document .sentence") == "<script>window.broken = 1</script> is a friend of Ada."
    page.open("/map?run=hostile").drawn()
    assert page.page.evaluate("window.broken") is None


def test_the_policy_holds_in_the_browser(page):
    page.open("/")
    page.page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.broken = 1";
        document.body.append(script);
        document.body.setAttribute("onclick", "window.broken = 2");
        document.body.click();
    }""")
    assert page.page.evaluate("window.broken") is None
    assert page.complaints and all("Content Security Policy" in said for said in page.complaints)
    page.complaints.clear()


def test_themes_and_narrow_screens(chromium, served):
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)):
        context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        context.set_default_timeout(60_000)
        page = Watched(context.new_page(), served)
        for where in ("/", "/store?q=lives", "/questions", "/compare", "/live"):
            page.open(where)
            assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (where, width)
        dark = page.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 21, 27)"
        assert dark == (scheme == "dark")
        page.page.click("button:text('Light')" if dark else "button:text('Dark')")
        page.open("/")
        assert (page.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 21, 27)") != dark
        page.checked()
        context.close()


def test_a_run_in_progress_updates_by_itself(chromium, run, tmp_path):
    growing = tmp_path / "growing"
    shutil.copytree(run, growing, ignore=shutil.ignore_patterns("trace.head"))
    lines = (run / "trace.jsonl").read_bytes().splitlines(keepends=True)
    commits = [at for at, line in enumerate(lines) if json.loads(line)["event"] == "commit"]
    (growing / "trace.jsonl").write_bytes(b"".join(lines[: commits[4] + 1]))
    with viewing(growing) as url:
        context = chromium.new_context()
        context.set_default_timeout(60_000)
        page = Watched(context.new_page(), url)
        page.open("/live")
        page.page.wait_for_selector("text=5 of 24 questions")
        with (growing / "trace.jsonl").open("ab") as trace:
            trace.write(b"".join(lines[commits[4] + 1 : commits[11] + 1]) + lines[commits[11] + 1][:40])
        page.page.wait_for_selector("text=12 of 24 questions")
        page.page.click("nav >> text=Questions")
        page.page.click(".tabs >> text=Training questions")
        page.page.wait_for_selector("text=12 rows")
        page.checked()
        context.close()


def test_it_is_fast(chromium, tmp_path_factory, capsys):
    """First paint, a step of the slider, and a map of 6,500 documents and 195,000 links; limits are generous."""
    place = tmp_path_factory.mktemp("default")
    with ThreadPoolExecutor(1) as pool:  # the browser's own loop is in this thread
        run = pool.submit(small_run, place / "default", 500, Settings(embedder="hash"), 34).result()
    b3 = hub_store(place / "b3", generate(500, 0))
    with viewing(run, b3) as url:
        for name in ("default", "b3"):  # the layout is worked out once
            while httpx.get(f"{url}/api/map?run={name}", timeout=60).status_code == 202:
                pass
        context = chromium.new_context(viewport={"width": 1280, "height": 860})
        context.set_default_timeout(120_000)
        page = Watched(context.new_page(), url)
        page.page.goto(f"{url}/?run=default")
        page.page.wait_for_selector(".headline")
        paint = page.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        headline = page.page.evaluate("performance.now()")
        page.open("/map?run=default").drawn()
        slider = page.page.locator("input[type=range]")
        slider.focus()
        page.page.keyboard.press("Home")
        for _ in range(40):
            page.page.keyboard.press("ArrowRight")
        steps = sorted(page.measured("slider-step"))
        page.open("/map?run=b3").drawn()
        (ready,) = page.measured("map-ready")
        assert int(page.page.locator(".stage").get_attribute("data-nodes")) > 6_000
        page.checked()
        context.close()
    step = steps[len(steps) // 2]
    with capsys.disabled():
        print(f"\nfirst paint {paint:.0f} ms, headline {headline:.0f} ms, slider step {step:.1f} ms (median of "
              f"{len(steps)}, most {steps[-1]:.1f}), B3's map {ready:.0f} ms")  # fmt: skip
    assert paint < 5_000
    assert step < 500
    assert ready < 25_000
