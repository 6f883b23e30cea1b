"""Scales: the paper's settings are the shipped configs; budgets of drawn sets follow their rule."""

from __future__ import annotations

import numpy as np
import pytest

from lvdet.errors import InputError
from lvdet.experiments.scale import read_scale, scale_names
from lvdet.images import tail
from lvdet.training.configuration.config_file import flat_values, read_config
from lvdet.training.configuration.shipped import FOLDER, shipped_names

LVIS_CLASSES, LVIS_VAL = 1203, 19_809


def test_names() -> None:
    assert scale_names() == ["lvis", "synth", "tiny"]
    with pytest.raises(InputError, match="expected one of lvis, synth, tiny"):
        read_scale("coco")


@pytest.mark.parametrize("name", shipped_names())
def test_the_paper_s_scale_is_the_shipped_config(name: str) -> None:
    shipped = flat_values(read_config(FOLDER / f"{name}.toml"))
    assert flat_values(read_scale("lvis").config(name, 0)) == shipped


@pytest.mark.parametrize("scale_name", scale_names())
@pytest.mark.parametrize("name", shipped_names())
def test_every_config_exists_at_every_scale(scale_name: str, name: str) -> None:
    config = read_scale(scale_name).config(name, 5)
    assert config.run.seed == 5
    milestones = config.schedule.milestones
    assert list(milestones) == sorted(set(milestones))
    assert not milestones or milestones[-1] <= config.schedule.steps


def test_what_a_scale_does_not_say_stays() -> None:
    synth = read_scale("synth")
    for name in shipped_names():
        here, shipped = (
            flat_values(one)
            for one in (synth.config(name, 0), read_config(FOLDER / f"{name}.toml"))
        )
        said = {*synth.settings, *synth.factors, *synth.replaced, "run.seed"}
        assert {key for key in here if here[key] != shipped[key]} <= said


def test_budgets_of_the_drawn_set_follow_the_rule() -> None:
    synth = read_scale("synth")
    main, coco = synth.sets["main"], synth.sets["coco"]
    assert synth.dets_per_image == round(300 * main.classes / LVIS_CLASSES)
    assert synth.dets_per_class == round(10_000 * main.validation / LVIS_VAL)
    assert coco.classes == round(main.classes * 80 / LVIS_CLASSES)
    assert synth.limits("class=50000,image=300").dets_per_class == round(
        50_000 * synth.dets_per_class / 10_000
    )
    assert synth.limits("classes=rc,image=300").classes == "rc"


def test_frequencies_of_the_drawn_set_are_like_those_of_lvis() -> None:
    """LVIS v1 has 405 frequent, 461 common and 337 rare classes."""
    main = read_scale("synth").sets["main"]
    expected = tail.expected_images(main.classes, main.images, main.images * main.positive)
    letters = tail.frequency_letters(np.floor(expected).astype(np.int64))
    for letter, number in (("f", 405), ("c", 461), ("r", 337)):
        assert letters.count(letter) / main.classes == pytest.approx(number / 1203, abs=0.05)
    assert expected.min() >= 1
