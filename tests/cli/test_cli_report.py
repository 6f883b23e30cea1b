"""`lvdet report` as a command."""

from __future__ import annotations

import json
from pathlib import Path

import plotly.graph_objects as go
import pytest
from PIL import Image

import lvdet
from cli.run_lvdet import lvdet_call, lvdet_command
from lvdet.simulation.simulate import simulate


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    gt, dt = simulate(15, 20, seed=4)
    lvdet.write_ground_truth(gt, folder / "gt.json")
    lvdet.write_detections(dt, folder / "a.json")
    lvdet.write_detections(dt[::2], folder / "b.json")
    (folder / "images").mkdir()
    for name, width, height in zip(
        gt.images.file_names, gt.images.width, gt.images.height, strict=True
    ):
        Image.new("RGB", (int(width), int(height))).save(folder / "images" / name)
    return folder


def test_one_file(files: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = lvdet_command("report", files / "gt.json", files / "a.json", "-o", page).good()
    assert "AP-Fixed" in done.out
    assert f"wrote {page}: " in done.out
    assert page.read_text().startswith("<!doctype html>")


def test_the_page_has_a_name_by_default(files: Path, tmp_path: Path) -> None:
    lvdet_command("report", files / "gt.json", files / "a.json", cwd=tmp_path).good()
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_several_files(files: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    sources = [files / name for name in ("gt.json", "a.json", "b.json")]
    options = ("--resamples", "100", "--name", "all of it", "--name", "half of it", "-o", page)
    done = lvdet_call("report", *sources, *options).good()
    assert "half of it" in done.out
    assert "than all of it" in done.out or "and all of it" in done.out
    assert "<h1>all of it · half of it</h1>" in page.read_text()


def test_images_and_calibration(files: Path, tmp_path: Path) -> None:
    gt, dt, page = files / "gt.json", files / "a.json", tmp_path / "report.html"
    calibrator = tmp_path / "cal.json"
    lvdet_call("calibrate", "fit", gt, dt, "--method", "platt", "-o", calibrator).good()
    number = str(json.loads(gt.read_text())["images"][3]["id"])
    options = ["--calibrator", calibrator, "--images", files / "images", "--image-id", number]
    lvdet_call("report", gt, dt, "-o", page, *options).good()
    text = page.read_text()
    assert f"Image {number} (" in text
    assert "platt, fitted earlier on" in text
    assert text.count("data:image/jpeg;base64,") == 1
    lvdet_call("report", gt, dt, "-o", page, "--train", gt, dt).good()
    assert "hierarchical, fitted on" in page.read_text()


def test_figures(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which files there are; that a browser draws them is tested with the reports."""

    def draw(figures: list[go.Figure], paths: list[Path], **_: object) -> None:
        for figure, path in zip(figures, paths, strict=True):
            path.write_text(figure.to_json())

    monkeypatch.setattr("plotly.io.write_images", draw)
    page, figures = tmp_path / "report.html", tmp_path / "figures"
    options = ["-o", page, "--figures", figures]
    done = lvdet_call("report", files / "gt.json", files / "a.json", *options).good()
    written = sorted(path.name for path in figures.iterdir())
    assert f"wrote {figures}: {len(written)} files" in done.out
    assert {"limit-per-image.pdf", "limit-per-image.png", "tables.tex"} <= set(written)


@pytest.mark.parametrize(
    ("says", "arguments"),
    [
        ("unknown extension '.pdf'", ["-o", "report.pdf"]),
        ("no such folder", ["-o", "nowhere/report.html"]),
        ("two values", ["--train", "gt.json"]),
        ("expected one each", ["--train", "gt.json", "a", "--train", "gt.json", "b"]),
        ("no such image folder", ["--images", "nowhere"]),
        ("without a folder of images", ["--image-id", "3"]),
        ("is not in", ["--images", "images", "--image-id", "3"]),
        ("cal.json: No such file", ["--calibrator", "cal.json"]),
        ("method is 'magic'", ["--method", "magic"]),
        ("2 names for 1", ["--name", "a", "--name", "b"]),
        ("not a folder", ["--figures", "gt.json"]),
        ("iou is 'circle'", ["--iou", "circle"]),
    ],
)
def test_refused_in_a_line(
    files: Path, says: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    code = 1 if "nowhere/" in " ".join(arguments) else 2
    lvdet_call("report", "gt.json", "a.json", *arguments).refused(says, code=code)
    assert not (files / "report.html").exists()


def test_files_that_are_not_there(files: Path) -> None:
    lvdet_call("report", files / "gt.json", files / "none.json").refused("none.json")
    lvdet_call("report", files / "none.json", files / "a.json").refused("none.json")
    lvdet_call("report", files / "gt.json").refused("Missing argument")
