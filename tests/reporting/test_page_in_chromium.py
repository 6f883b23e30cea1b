"""The page in a real browser, as a reader meets it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Literal

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize

from lvdet.reporting.figures.catalogue import all_figures
from lvdet.reporting.report import Report
from reporting.hostile import FILE_NAME, NAMES, HostileSet

WIDE, PHONE = (1440, 900), (390, 844)
Scheme = Literal["light", "dark"]


class Opened:
    """A page that keeps account of what it should not do."""

    def __init__(self, page: Page, scheme: Scheme) -> None:
        self.page = page
        self.scheme: Scheme = scheme
        self.requests: list[str] = []
        self.messages: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("dialog", lambda dialog: (self.messages.append(dialog.message), dialog.dismiss()))

    def open(self, path: Path) -> Opened:
        self.page.goto(path.as_uri())
        wait_until(self.page, "'lvdetReport' in window")
        return self

    def as_at_first(self) -> Opened:
        """Undoes what tests do to a page that they share, but for the order of the table."""
        self.page.emulate_media(color_scheme=self.scheme)
        self.page.select_option("#theme", "auto")
        self.page.select_option("#model", "0")
        self.page.fill("#class-search", "")
        for group in "rcf":
            self.page.check(f"input[name='group'][value='{group}']")
        return self

    def scroll_through(self) -> None:
        """Brings every figure into view, and waits until it is drawn."""
        for canvas in self.page.query_selector_all(".canvas"):
            if canvas.is_visible():
                canvas.scroll_into_view_if_needed()
                canvas.wait_for_selector(".main-svg", state="attached")


@pytest.fixture(scope="module")
def shared(browser: Browser, page_file: Path) -> Iterator[Opened]:
    """The page on a wide screen, open for all tests."""
    with opening(browser, page_file, WIDE) as one:
        yield one


@pytest.fixture
def opened(shared: Opened) -> Opened:
    """The same, as when it was opened."""
    return shared.as_at_first()


@pytest.fixture(scope="module")
def on_phone(browser: Browser, page_file: Path) -> Iterator[Opened]:
    """The page on a phone, dark."""
    with opening(browser, page_file, PHONE, "dark") as one:
        yield one


@contextmanager
def opening(
    browser: Browser, path: Path, size: tuple[int, int], scheme: Scheme = "light"
) -> Iterator[Opened]:
    viewport: ViewportSize = {"width": size[0], "height": size[1]}
    context = browser.new_context(viewport=viewport, color_scheme=scheme, offline=True)
    yield Opened(context.new_page(), scheme).open(path)
    context.close()


def test_no_network_no_errors_and_every_figure(opened: Opened, page_file: Path) -> None:
    opened.scroll_through()
    asked = [url for url in opened.requests if not url.startswith(("data:", "blob:"))]
    assert asked == [page_file.as_uri()]
    assert opened.messages == []


def test_every_figure_of_every_detector_is_drawn(opened: Opened, report: Report) -> None:
    page = opened.page
    opened.scroll_through()
    figures = all_figures(report.studies, report.comparison)
    ids = page.evaluate("[...document.querySelectorAll('.canvas')].map(c => c.dataset.figure)")
    assert sorted(ids) == sorted(figures)
    for place in range(len(report.studies)):
        page.select_option("#model", str(place))
        for name, versions in figures.items():
            figure = versions[place] if len(versions) > 1 else versions[0]
            traces = page.evaluate(
                "name => document.querySelector(`.canvas[data-figure='${name}']`)"
                ".querySelectorAll('.trace, .box, .boxes .path').length",
                name,
            )
            assert figure is not None
            assert traces >= len(figure.data), name
            drawn = page.evaluate(
                "name => document.querySelector(`.canvas[data-figure='${name}']`).data"
                ".map(trace => trace.name ?? '')",
                name,
            )
            assert drawn == [trace.name or "" for trace in figure.data], name


def test_sorts_all_classes(opened: Opened, report: Report) -> None:
    page = opened.page
    fixed = report.studies[0].evaluation["fixed"].curves
    assert fixed is not None
    ap = fixed.precision[:, 0].mean(axis=1)
    head = page.locator("#class-table th", has_text="AP-Fixed").first
    for direction in ("descending", "ascending"):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == direction
        shown = _column(page, 3)
        assert len(shown) == 1203
        undefined = int(np.isnan(ap).sum())
        known = np.sort(np.round(100 * ap[~np.isnan(ap)], 2))
        if direction == "descending":
            known = known[::-1]
        values = [float(text) for text in shown[: len(known)]]
        assert np.abs(np.array(values) - known).max() < 0.06  # shown to a tenth
        assert shown[len(known) :] == ["–"] * undefined
    page.locator("#class-table th", has_text="frequency").locator("button").click()
    groups = _column(page, 1)
    assert groups == sorted(groups, key=["rare", "common", "frequent"].index)
    page.locator("#class-table th", has_text="class").first.locator("button").click()
    names = [name.lower() for name in _column(page, 0)]
    plain = [name for name in names if name.startswith("class_")]
    assert len(plain) > 1190
    assert plain == sorted(plain)


def test_filters_all_classes(opened: Opened, hostile: HostileSet) -> None:
    page = opened.page
    categories = hostile.gt.categories
    status = page.locator("#classes-shown")
    assert status.inner_text() == "1,203 of 1,203 classes"
    page.fill("#class-search", "CLASS_01 7")
    wanted = [name for name in categories.names if "class_01" in name and "7" in name]
    assert 0 < len(wanted) < 100
    assert sorted(_visible(page)) == sorted(wanted)
    assert status.inner_text() == f"{len(wanted)} of 1,203 classes"
    page.fill("#class-search", "")
    page.uncheck("input[name='group'][value='f']")
    page.uncheck("input[name='group'][value='c']")
    rare = int((categories.frequency == "r").sum())
    assert len(_visible(page)) == rare
    page.fill("#class-search", "no such class")
    assert _visible(page) == []
    assert status.inner_text() == "0 of 1,203 classes"


def test_a_class_can_be_looked_at(opened: Opened, report: Report) -> None:
    page = opened.page
    rows = np.flatnonzero(report.studies[0].evaluation.truth > 0)
    row = int(rows[len(rows) // 2])
    name = report.studies[0].evaluation.categories.names[row]
    page.fill("#class-search", name)
    page.locator("#class-table tbody tr:not([hidden]) button").click()
    assert page.locator("#chosen-class").inner_text() == name
    drawn = page.evaluate(
        "document.querySelector(\".canvas[data-figure='class-precision']\").data.map(t => t.y)"
    )
    for place, study in enumerate(report.studies):
        expected = (study.curves.classes[row], study.curves.classes_50[row])
        for values, curve in zip(drawn[2 * place : 2 * place + 2], expected, strict=True):
            assert np.abs(np.array(values) - curve).max() <= 0.5 / 250 + 1e-9


def test_switches_the_detector(opened: Opened, report: Report) -> None:
    page = opened.page
    opened.scroll_through()
    script = "document.querySelector(\".canvas[data-figure='limit-by-frequency']\").data[0].y"
    for place, study in enumerate(report.studies):
        page.select_option("#model", str(place))
        rows = [row for row in study.limits.rows if row.table == "by-image"]
        expected = [round(100 * row.metrics["AP"], 3) for row in rows]
        wait_until(
            page, f"expected => JSON.stringify({script}) === JSON.stringify(expected)", expected
        )
        parts = page.locator("[data-model]")
        for part in parts.all():
            assert part.is_visible() == (part.get_attribute("data-model") == str(place))


def test_switches_the_theme(opened: Opened) -> None:
    page = opened.page
    opened.scroll_through()
    ground = "getComputedStyle(document.body).backgroundColor"
    ink = "document.querySelector('.canvas .xtitle').style.fill"
    light = page.evaluate(ground), page.evaluate(ink)
    page.select_option("#theme", "dark")
    wait_until(page, f"{ink} !== '{light[1]}'")
    dark = page.evaluate(ground), page.evaluate(ink)
    assert _lightness(light[0]) > 0.8 > 0.2 > _lightness(dark[0])
    assert _lightness(light[1]) < 0.2 < 0.8 < _lightness(dark[1])
    page.select_option("#theme", "auto")
    wait_until(page, f"{ink} === '{light[1]}'")
    page.emulate_media(color_scheme="dark")
    wait_until(page, f"{ink} === '{dark[1]}'")


@pytest.mark.parametrize(
    ("size", "scheme", "theme"),
    [
        (WIDE, "light", "auto"),
        pytest.param(PHONE, "dark", "auto", marks=pytest.mark.long),
        pytest.param(WIDE, "light", "dark", marks=pytest.mark.long),
    ],
)
def test_passes_axe(
    browser: Browser, small_page: Path, size: tuple[int, int], scheme: Scheme, theme: str
) -> None:
    """Rows of the table are alike, and axe takes long over a thousand of them."""
    with opening(browser, small_page, size, scheme) as one:
        one.page.select_option("#theme", theme)
        one.scroll_through()
        found = Axe().run(one.page)
        assert found.violations_count == 0, found.generate_report()


@pytest.fixture(scope="module")
def pictures(browser: Browser, small_page: Path) -> Iterator[Opened]:
    """A page with masks drawn on images."""
    with opening(browser, small_page, WIDE) as one:
        yield one


def test_nothing_but_the_page_itself_runs(pictures: Opened) -> None:
    """Scripts that get into the page do not run, and nothing is fetched."""
    pictures.page.evaluate(
        "() => { const script = document.createElement('script');"
        " script.textContent = 'window.harmed = 1'; document.head.append(script);"
        " const link = document.createElement('img'); document.body.append(link);"
        " link.setAttribute('onerror', 'window.harmed = 1'); link.src = 'http://localhost:1/';"
        " link.remove(); }"
    )
    assert pictures.page.evaluate(
        "fetch('http://localhost:1/').catch(error => error.message)"
    ).startswith("Failed")
    wait_until(pictures.page, "!window.harmed")
    refused = [text for text in pictures.messages if "Content Security Policy" in text]
    assert len(refused) >= 3
    pictures.messages.clear()


def test_masks_are_drawn_as_masks(pictures: Opened) -> None:
    """Ellipses fill π/4 of their boxes."""
    filled = pictures.page.evaluate(
        """[...document.querySelectorAll(".picture:not([hidden]) .scene g")].map(mark => {
            const use = mark.querySelector("use"), box = mark.getBBox();
            const path = document.querySelector(use.getAttribute("href"));
            const at = (x, y) => path.isPointInFill(new DOMPoint(x, y));
            let inside = 0;
            for (let y = 0; y < 20; y++) for (let x = 0; x < 20; x++)
              inside += at(box.x + (x + .5) / 20 * box.width, box.y + (y + .5) / 20 * box.height);
            return [Math.min(box.width, box.height), inside / 400];
        })"""
    )
    large = [share for side, share in filled if side > 20]
    assert len(large) > 20
    assert np.abs(np.array(large) - np.pi / 4).max() < 0.05


def test_detections_are_highlighted_from_their_list(pictures: Opened) -> None:
    page = pictures.page
    side = page.locator(".picture:not([hidden]) .side").first
    picked = side.locator(".scene g.picked")
    assert picked.count() == 0
    side.locator(".boxes li").nth(3).hover()
    assert picked.get_attribute("data-rank") == "4"
    assert side.locator(".scene text.picked").is_visible()
    page.mouse.move(0, 0)
    assert picked.count() == 0
    side.locator(".boxes li").first.focus()
    for key, rank in (("ArrowDown", "2"), ("End", "20"), ("ArrowDown", "20"), ("ArrowUp", "19")):
        page.keyboard.press(key)
        assert picked.get_attribute("data-rank") == rank
    assert side.locator(".boxes li[tabindex='0']").count() == 1
    page.keyboard.press("Tab")
    assert picked.count() == 0


def test_lists_stay_in_their_columns(pictures: Opened) -> None:
    """Though names are long."""
    overlaps = """[...document.querySelectorAll(".picture:not([hidden]) .side")]
        .flatMap(side => {
            const boxes = [...side.querySelectorAll("li")].map(e => e.getBoundingClientRect());
            return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => a.left < b.right - 1
              && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1));
        }).length"""
    assert pictures.page.evaluate(overlaps) == 0
    assert pictures.page.evaluate(
        "[...document.querySelectorAll('.picture:not([hidden]) li')]"
        ".every(item => item.scrollWidth <= item.clientWidth + 1)"
    )


def test_the_first_screen_says_it_all(shared: Opened) -> None:
    """Three numbers with their budgets, a sentence and a warning."""
    ends = shared.page.evaluate(
        "[...document.querySelectorAll('.number .value, .lead, .warnings p')]"
        ".map(part => part.getBoundingClientRect().bottom + scrollY)"
    )
    assert len(ends) == 2 * 3 + 1 + 1  # two detectors
    assert max(ends) <= WIDE[1]
    budgets = shared.page.locator(".number dt + dd").all_inner_texts()
    assert budgets == ["300 detections per image", *["10,000 detections per class"] * 2]


def test_fits_its_screen(opened: Opened, on_phone: Opened) -> None:
    for one, (width, _) in ((opened, WIDE), (on_phone, PHONE)):
        one.scroll_through()
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width
        for selector in (".canvas .main-svg", "h1", "h2", ".number", ".warnings", ".controls"):
            for element in one.page.query_selector_all(selector):
                box = element.bounding_box()
                if box is not None and box["width"]:
                    assert box["x"] >= 0, selector
                    assert box["x"] + box["width"] <= width + 1, selector


def test_prints(browser: Browser, page_file: Path, tmp_path: Path) -> None:
    with opening(browser, page_file, WIDE) as one:
        check_print(one.page, tmp_path / "page.pdf")


def check_print(page: Page, target: Path) -> None:
    page.select_option("#theme", "dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    wait_until(
        page, "[...document.querySelectorAll('.canvas')].every(c => c.querySelector('.main-svg'))"
    )
    assert not page.locator(".bar").is_visible()
    assert all(warning.is_visible() for warning in page.locator(".warnings li").all())
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    ink = page.evaluate("document.querySelector('.canvas .xtitle').style.fill")
    assert _lightness(ink) < 0.2
    assert page.locator("#class-table tbody tr:visible").count() == 60
    page.pdf(path=target)
    assert target.read_bytes().startswith(b"%PDF")


def test_hostile_names_are_text(opened: Opened) -> None:
    page = opened.page
    opened.scroll_through()
    shown = _column(page, 0)
    for name in NAMES:
        if name:
            assert name in shown
    for name in NAMES[:-1]:
        page.evaluate(
            "name => [...document.querySelectorAll('#class-table tbody button')]"
            ".find(b => b.textContent === name).click()",
            name,
        )
        assert page.locator("#chosen-class").inner_text() == " ".join(name.split())
    assert FILE_NAME in page.locator("h1").inner_text()
    assert FILE_NAME in page.title()
    legend = page.evaluate(
        "document.querySelector(\".canvas[data-figure='limit-per-image'] .legendtext\").textContent"
    )
    assert legend.startswith("qu'ote\" <img src=x")
    assert legend.endswith("results.json")
    assert page.evaluate("window.harmed") is None
    assert page.evaluate("document.querySelectorAll('img, a[href^=javascript]').length") == 0
    assert opened.messages == []


def test_hostile_names_in_figures_are_text(opened: Opened, report: Report) -> None:
    page = opened.page
    opened.scroll_through()
    rows = report.studies[0].diagnosis.confusions.rows(15)
    assert any(row["detected"]["name"] in NAMES or row["actual"]["name"] in NAMES for row in rows)
    ticks = page.evaluate(
        "[...document.querySelectorAll(\".canvas[data-figure='confusions'] .ytick text\")]"
        ".map(tick => tick.textContent)"
    )
    for row, tick in zip(rows[::-1], ticks, strict=True):
        for name in (row["detected"]["name"], row["actual"]["name"]):
            shown = name or f"class {row['detected']['id']}"
            assert " ".join(shown[:9].split()) in tick or not name


def wait_until(page: Page, expression: str, argument: object = None) -> None:
    """Waits until an expression holds. Playwright's own way evaluates text inside the page, which
    the page's policy forbids."""
    end = monotonic() + 30
    while not page.evaluate(expression, argument):
        assert monotonic() < end, expression
        page.wait_for_timeout(20)


def _column(page: Page, place: int) -> list[str]:
    return page.evaluate(
        "place => [...document.querySelectorAll('#class-table tbody tr')]"
        ".map(row => row.children[place].textContent)",
        place,
    )


def _visible(page: Page) -> list[str]:
    return page.evaluate(
        "[...document.querySelectorAll('#class-table tbody tr')].filter(row => !row.hidden)"
        ".map(row => row.children[0].textContent)"
    )


def _lightness(colour: str) -> float:
    """Of an "rgb(…)", from 0 to 1."""
    parts = colour[colour.index("(") + 1 : -1].split(",")[:3]
    return sum(float(part) for part in parts) / (3 * 255)
