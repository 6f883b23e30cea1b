"""Pages to look at, and the browser to look with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import lvdet
from lvdet.reporting.report import Report
from reporting.hostile import HostileSet, hostile_set

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> HostileSet:
    """1,203 classes, some with hostile names, and two detectors."""
    return hostile_set(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="session")
def report(hostile: HostileSet) -> Report:
    """The report on both detectors."""
    return lvdet.report(hostile.annotations, hostile.results, resamples=200)


@pytest.fixture(scope="session")
def page_file(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its page."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    report.save(path)
    return path


@pytest.fixture(scope="session")
def small_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of the same kind with 20 classes, and with masks drawn on an image."""
    folder = tmp_path_factory.mktemp("small")
    small = hostile_set(folder, classes=20, candidates=60, masks=True)
    images = small.gt.images
    size = (int(images.width[0]), int(images.height[0]))
    Image.new("RGB", size, (90, 120, 150)).save(folder / images.file_names[0])
    lvdet.report(small.annotations, small.results, resamples=100, images=folder).save(
        folder / "report.html"
    )
    return folder / "report.html"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a network."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
