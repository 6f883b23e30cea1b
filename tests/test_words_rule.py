"""The rule of wording finds what reads as translated, and passes what the glossary has."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "tools" / "check_words.py"


@pytest.fixture(scope="module")
def rule() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_words", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "text",
    [
        "300 detections an image",
        "10,000 a class",
        "a limit an image",
        "detections a class",
        "expected a list with one a row",
        "a process that was killed goes on where it was",
        "was cut at 300 before it came here",
        "which of them is it to be?",
        "how often intervals are to cover the difference",
        "a whole number of 0 or more",
        "the share of right detections",
        '"300 detections "\n        "an image"',
        "#: at most 300\n#: an image",
        "A limit\nan image.",
        "the run goes on",
        "AP-Old is that of re-ranked results",
        "a prefix of it",
        "a weak detector is no wrong file",
        "a limit per image, and else per class: and else",
        "the given rows; else the boxes",
        "the classes that are asked for",
        "detections by falling score",
        "once everything is worked out",
        "the function gives back a table",
        "masks where there are none",
        "it takes no --annotations",
        "the best rows of so many images",
        "the problem is said when the file is read",
        "tables, one after the other",
        "boxes outside of the image",
        "rows that are looked at",
        "rows that are none",
        "files that are there already",
        "save your work and stop.",
    ],
)
def test_bad_words_are_found(text: str, rule: ModuleType) -> None:
    assert list(rule.findings(text))


@pytest.mark.parametrize(
    "text",
    [
        "appears truncated at 300 detections per image",
        "10,000 per class",
        "a limit per image drops them first",
        "an image of 300 x 200 pixels",
        "the images a class has",
        "one of a class",
        "resumes after an interruption",
        "a non-negative integer",
        "the share of correct detections",
        "LIMIT = 100\n#: A class",
        "the protocols are those of Dave et al.",
        "the numbers are those of lvis 0.5.3",
        "there are no objects",
        "a limit is no longer needed",
        "all of it",
        "What else it does",
        "ask for help",
        "AP keeps rising",
        "not so many",
        "and stop the clock",
    ],
)
def test_good_words_pass(text: str, rule: ModuleType) -> None:
    assert list(rule.findings(text)) == []


def test_the_place_and_what_to_write_instead(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Fine.\nAt most 300 an image.\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, SCRIPT, page], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == f"{page}:2: '300 an image': write 'N per image, N per class'\n"


def test_the_code_and_the_first_pages_pass() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0)
