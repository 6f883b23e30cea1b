"""Draws report.png: the top of the page that `lvdet demo` ends with, in Debian's Chromium.

.venv/bin/python docs/images/make_report_png.py
"""

from __future__ import annotations

import shutil
from pathlib import Path

from demo_files import demo_files
from playwright.sync_api import sync_playwright

TARGET = Path(__file__).with_name("report.png")
WIDTH, HEIGHT = 1180, 1140


def main() -> None:
    with demo_files() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto((folder / "report.html").as_uri())
        page.wait_for_function("window.lvdetReport")
        page.evaluate("lvdetReport.drawAll()")
        page.wait_for_selector("[data-figure='deltas'] .main-svg")
        page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
