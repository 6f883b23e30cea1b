"""Draws the pictures of docs/concepts: what `lvdet demo` makes, and schemes.

.venv/bin/python docs/images/make_concept_svgs.py
"""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np
from demo_files import demo_files

import lvdet
from lvdet.limits.budgets import PerImage, apply

FOLDER = Path(__file__).parent
#: Colours by name: on light pages, on dark ones.
COLOURS = {
    "page": ("#ffffff", "#1e2129"),
    "ink": ("#24292f", "#e2e4e9"),
    "dim": ("#636a76", "#a3aab5"),
    "grid": ("#e1e4e9", "#3b4150"),
    "rare": ("#c2570c", "#fbbf24"),
    "common": ("#0d8074", "#2dd4bf"),
    "frequent": ("#4f46e5", "#8b9bfb"),
    "wrong": ("#dc2626", "#f87171"),
}
FREQUENCIES = {"r": "rare", "c": "common", "f": "frequent"}


class Picture:
    """An SVG under construction, in pixels; colours are names of `COLOURS`."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size, self.title = (width, height), title
        self.parts = [f'<rect class="page" width="{width}" height="{height}" rx="6"/>']

    def box(
        self, x: float, y: float, w: float, h: float, colour: str, *, faint: bool = False
    ) -> None:
        opacity = ' opacity="0.25"' if faint else ""
        self.parts.append(
            f'<rect class="{colour}" x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" '
            f'rx="2"{opacity}/>'
        )

    def text(
        self, x: float, y: float, text: str, colour: str = "ink", *, anchor: str = "start",
        size: int = 14, bold: bool = False,
    ) -> None:  # fmt: skip
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text class="{colour}" x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"'
            f"{weight}>{escape(text)}</text>"
        )

    def line(self, points: list[tuple[float, float]], colour: str, *, dashed: bool = False) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<polyline class="l-{colour}" points="{path}"{dash}/>')

    def dot(self, x: float, y: float, colour: str, *, hollow: bool = False) -> None:
        kind = f"l-{colour} hollow" if hollow else colour
        self.parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')

    def save(self, name: str) -> None:
        width, height = self.size
        themes = [
            "".join(
                f".{key}{{fill:{both[number]}}}.l-{key}{{stroke:{both[number]}}}"
                for key, both in COLOURS.items()
            )
            for number in (0, 1)
        ]
        style = (
            "polyline{fill:none;stroke-width:2}.hollow{fill:none;stroke-width:2}"
            "text{font-family:system-ui,sans-serif}"
            f"{themes[0]}@media (prefers-color-scheme:dark){{{themes[1]}}}"
        )
        body = "\n".join(self.parts)
        (FOLDER / name).write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">\n<title>{escape(self.title)}</title>\n'
            f"<style>{style}</style>\n{body}\n</svg>\n",
            encoding="utf-8",
        )


def places(gt: lvdet.GroundTruth, dt: lvdet.Detections) -> None:
    """How many detections of each frequency group a limit of 300 per image keeps."""
    kept = apply([PerImage(300)], dt)
    frequency = dict(zip(gt.categories.ids.tolist(), gt.categories.frequency, strict=True))
    of_row = np.array([frequency[one] for one in dt.category_ids.tolist()])[dt.category]
    picture = Picture(720, 230, "Detections that a limit of 300 per image keeps")
    picture.text(24, 34, "Detections kept by 300 per image, by frequency group", bold=True)
    for number, (letter, name) in enumerate(reversed(FREQUENCIES.items())):
        rows = of_row == letter
        share = float(kept[rows].mean())
        y = 60 + 50 * number
        picture.text(120, y + 20, name, anchor="end")
        picture.box(134, y, 420, 30, name, faint=True)
        picture.box(134, y, 420 * share, 30, name)
        picture.text(566, y + 20, f"{100 * share:.0f}% of {int(rows.sum()):,}")
    picture.text(134, 216, "pale: dropped because other classes scored higher", "dim", size=13)
    picture.save("places.svg")


def limit(gt: lvdet.GroundTruth, dt: lvdet.Detections) -> None:
    """AP by the limit per image, with AP-Fixed."""
    limits = [50, 100, 200, 300, 500, 700, 1000, 1500]
    rows = lvdet.sweep(gt, dt, dets_per_image=limits).rows
    fixed = lvdet.evaluate(gt, dt, protocols=["fixed"])["fixed"]
    picture = Picture(720, 330, "AP by detections per image")

    def place(x: float, y: float) -> tuple[float, float]:
        return 70 + 500 * np.log(x / 50) / np.log(1500 / 50), 280 - 500 * y

    for level in (0.0, 0.1, 0.2, 0.3, 0.4):
        picture.line([place(50, level), place(1500, level)], "grid")
        picture.text(
            60, place(50, level)[1] + 5, f"{100 * level:.0f}", "dim", anchor="end", size=12
        )
    for one in limits:
        picture.text(place(one, 0)[0], 300, f"{one:,}", "dim", anchor="middle", size=12)
    for name, colour in (("APf", "frequent"), ("APc", "common"), ("APr", "rare")):
        points = [place(row.dets_per_image or 1, row.metrics[name]) for row in rows]
        picture.line(points, colour)
        for point in points:
            picture.dot(*point, colour)
        end = place(1500, fixed[name])
        picture.line([place(50, fixed[name]), end], colour, dashed=True)
        picture.text(end[0] + 14, end[1] + 5, f"{name} {100 * fixed[name]:.1f}", colour, bold=True)
    picture.text(70, 34, "AP by detections per image", bold=True)
    picture.text(330, 34, "dashed: AP-Fixed", "dim", size=13)
    picture.text(320, 320, "detections per image", "dim", anchor="middle", size=12)
    picture.save("limit.svg")


def ranking(
    picture: Picture, x: float, y: float, rows: list[tuple[str, float, bool, bool]], width: float
) -> None:
    """Detections below each other: frequency group, score, correct or not, kept or not."""
    for number, (group, score, correct, kept) in enumerate(rows):
        top = y + 26 * number
        picture.box(x, top, width * score, 18, group, faint=not kept)
        mark = "✓" if correct else "✗"
        picture.text(x + width + 8, top + 14, mark, group if correct else "wrong")
        picture.text(
            x - 8, top + 14, f"{score:.2f}", "ink" if kept else "dim", anchor="end", size=12
        )


def fixed_scheme() -> None:
    """A limit per image drops rows of one class because of another; one per class does not."""
    rows = [
        ("frequent", 0.95, True), ("frequent", 0.85, True), ("frequent", 0.62, False),
        ("frequent", 0.51, False), ("rare", 0.40, True), ("rare", 0.22, True),
    ]  # fmt: skip
    picture = Picture(720, 260, "A limit per image and a limit per class")
    picture.text(60, 34, "Limit: 4 per image", bold=True)
    ranking(picture, 60, 56, [(*row, place < 4) for place, row in enumerate(rows)], 220)
    picture.text(420, 34, "Limit: 4 per class", bold=True)
    ranking(picture, 420, 56, [(*row, True) for row in rows], 220)
    _legend(picture, 60, 244, "pale: dropped")
    picture.save("fixed.svg")


def pool_scheme() -> None:
    """Rankings of two classes, and of both together."""
    common = [("frequent", 0.93, True), ("frequent", 0.80, True), ("frequent", 0.60, False)]
    rare = [("rare", 0.34, True), ("rare", 0.20, True), ("rare", 0.09, False)]
    picture = Picture(720, 286, "One ranking per class, and one for all classes")
    picture.text(60, 34, "AP-Fixed: one ranking per class", bold=True)
    ranking(picture, 60, 56, [(*row, True) for row in common], 220)
    ranking(picture, 60, 152, [(*row, True) for row in rare], 220)
    picture.text(420, 34, "AP-Pool: one ranking", bold=True)
    both = sorted(common + rare, key=lambda row: -row[1])
    ranking(picture, 420, 56, [(*row, True) for row in both], 220)
    picture.text(420, 232, "an incorrect detection comes before", "wrong", size=13)
    picture.text(420, 249, "both correct ones of the rare class", "wrong", size=13)
    _legend(picture, 60, 272, "")
    picture.save("pool.svg")


def _legend(picture: Picture, x: float, y: float, note: str) -> None:
    picture.box(x, y - 11, 12, 12, "frequent")
    picture.text(x + 18, y, "frequent class", "dim", size=13)
    picture.box(x + 130, y - 11, 12, 12, "rare")
    picture.text(x + 148, y, "rare class", "dim", size=13)
    picture.text(
        x + 235, y, "✓ correct, ✗ incorrect" + (f", {note}" if note else ""), "dim", size=13
    )


def federated_scheme() -> None:
    """What is known of some classes in some images."""
    grid = ["AUUNU", "UAUUN", "UUPUA", "NUAUU", "UNUAU"]
    kinds = {
        "A": ("frequent", "annotated"),
        "N": ("common", "ruled out"),
        "P": ("rare", "not exhaustive"),
        "U": ("grid", "unknown"),
    }
    picture = Picture(720, 250, "What federated labels know")
    for column, name in enumerate(("cup", "dog", "kite", "pear", "sofa")):
        picture.text(133 + 58 * column, 36, name, anchor="middle", size=13)
    for row, letters in enumerate(grid):
        picture.text(92, 66 + 38 * row, f"image {row + 1}", "dim", anchor="end", size=13)
        for column, letter in enumerate(letters):
            picture.box(106 + 58 * column, 46 + 38 * row, 54, 32, kinds[letter][0])
    texts = (
        "detections count",
        "detections count",
        "matched ones count",
        "detections do not count",
    )
    for number, ((colour, name), text) in enumerate(zip(kinds.values(), texts, strict=True)):
        y = 60 + 46 * number
        picture.box(440, y, 22, 22, colour)
        picture.text(474, y + 10, name, size=14, bold=True)
        picture.text(474, y + 28, text, "dim", size=13)
    picture.save("federated.svg")


def reliability(gt: lvdet.GroundTruth, dt: lvdet.Detections, calibrated: lvdet.Detections) -> None:
    """Share of correct detections by score, before and after calibration."""
    picture = Picture(720, 350, "Reliability before and after calibration")
    for number, (title, table) in enumerate((("Uncalibrated", dt), ("Calibrated", calibrated))):
        left = 60 + 350 * number
        samples = lvdet.Calibrator("identity").measure(gt, table).samples
        picture.text(left, 34, title, bold=True)
        for level in (0.0, 0.5, 1.0):
            y = 290 - 230 * level
            picture.line([(left, y), (left + 270, y)], "grid")
            picture.text(left - 8, y + 5, f"{level:.1f}", "dim", anchor="end", size=12)
            picture.text(left + 270 * level, 308, f"{level:.1f}", "dim", anchor="middle", size=12)
        picture.line([(left, 290), (left + 270, 60)], "dim", dashed=True)
        for letter, name in FREQUENCIES.items():
            rows = samples.group_rows()[letter]
            score, correct = samples.score[rows], samples.right[rows]
            bins = np.minimum((score * 10).astype(int), 9)
            points = [
                (left + 270 * score[bins == one].mean(), 290 - 230 * correct[bins == one].mean())
                for one in range(10)
                if (bins == one).sum() >= 30
            ]
            picture.line(points, name)
            for point in points:
                picture.dot(*point, name)
        picture.text(left + 135, 326, "mean score", "dim", anchor="middle", size=12)
    for number, name in enumerate(FREQUENCIES.values()):
        picture.box(60 + 110 * number, 335, 11, 11, name)
        picture.text(76 + 110 * number, 345, name, "dim", size=12)
    picture.text(400, 345, "up: share of correct detections at IoU 0.75", "dim", size=12)
    picture.save("reliability.svg")


def main() -> None:
    with demo_files() as folder:
        gt = lvdet.read_ground_truth(Path(folder, "annotations.json"))
        dt = lvdet.read_detections(Path(folder, "results.json"))
        calibrator = lvdet.Calibrator().fit(
            Path(folder, "train.json"), Path(folder, "train_results.json")
        )
        calibrated = calibrator.transform(dt)
    places(gt, dt)
    limit(gt, dt)
    fixed_scheme()
    pool_scheme()
    federated_scheme()
    reliability(gt, dt, calibrated)


if __name__ == "__main__":
    main()
