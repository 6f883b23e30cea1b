"""Stale output is found; what may differ is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs import blocks as blocks_module
from docs.expected_output import same
from docs.run_page import differences


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("AP 27.61\nAPr 15.10", "AP 27.61\nAPr 15.10\n"),
        ("AP 27.61\n...", "AP 27.61\n"),
        ("AP 27.61\n...\nAPf 3", "AP 27.61\nAPr 1\nAPc 2\nAPf 3\n"),
        ("AP … points", "AP 27.61 points\n"),
        ("took 3 s", "took 12.5 s\n"),
        ("warning: a long\nline", "warning: a long line\n"),
        ("", ""),
    ],
)
def test_same(page: str, printed: str) -> None:
    assert same(page, printed)


@pytest.mark.parametrize(
    ("page", "printed"),
    [
        ("AP 27.61", "AP 27.62\n"),
        ("AP 27.61", "AP 27.61\nAPr 15.10\n"),
        ("AP 27.61\nAPr 15.10", "AP 27.61\n"),
        ("AP  27.61", "AP 27.61\n"),
        ("AP 27.61\n...\nAPf 3", "AP 27.61\nAPf 4\n"),
        ("", "AP 27.61\n"),
    ],
)
def test_stale(page: str, printed: str) -> None:
    assert not same(page, printed)


def test_a_shape_has_no_numbers() -> None:
    assert same("step 20/120  loss 4.621", "step 20/120 loss 4.7", shape=True)
    assert not same("step 20/120  loss 4.621", "step 20/120 mask 4.7", shape=True)


@pytest.mark.parametrize("time", ["2 min left", "1 h 05 min left", "3 d 4 h left", "45 s left"])
def test_times_are_not_compared(time: str) -> None:
    assert same("loss 4.6  89 s left", f"loss 4.6  {time}")
    assert not same("loss 4.6  89 s left", f"loss 4.7  {time}")


PAGE = """\
```console
$ echo 3; echo 4 >&2
3
4
$ echo one \\
    two
one three
```

```python
1 / 3  # 0.3333333333333333
sum([1, 1])  # 3
print("out")
```

```
of date
```

<!-- not run: needs another planet -->
```console
$ exit 1
```
"""


def test_differences_of_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.md").write_text(PAGE, encoding="utf-8")
    monkeypatch.setattr(blocks_module, "ROOT", tmp_path)
    found = [text.splitlines() for text in differences("page.md", tmp_path)]
    assert [lines[0] for lines in found] == [
        "page.md:1: $ echo one \\",
        "page.md:10: sum([1, 1]) is 2, the page says 3",
        "page.md:10: the page says",
    ]
