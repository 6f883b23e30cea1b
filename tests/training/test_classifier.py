"""Every head of the classifier: losses and their slopes, scores, and padding rows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from lvdet.errors import InputError
from lvdet.training.configuration import config
from lvdet.training.model.classifier import Classifier, Frequencies, build_classifier
from lvdet.training.model.linear import NormalizedLinear
from oracles import loss_references as reference
from oracles.loss_cases import (
    FREQUENCIES,
    LABEL,
    LOSSES,
    RANDOM,
    SETTINGS,
    TEMPERATURE,
    Case,
    made_case,
)
from oracles.loss_references import Floats

HEADS = list(itertools.product(LOSSES, (False, True), (False, True)))
heads = pytest.mark.parametrize(("loss", "objectness", "normalized"), HEADS)
FEW = settings(max_examples=20)
CLASSES = FREQUENCIES.classes
SEEDS = range(4)
#: Of two images.
SEED = torch.tensor([5, 8])


def arrays(case: Case) -> tuple[Floats, Floats, Floats]:
    """Features, weights and biases."""
    layer = case.classifier.layer
    return case.x.detach().numpy(), layer.weight.detach().numpy(), layer.bias.detach().numpy()


def large(loss: str, *, objectness: bool, normalized: bool) -> Classifier:
    """With as many classes as LVIS v1."""
    rng = np.random.default_rng(8)
    images = np.sort(rng.geometric(0.001, 1203))[::-1].astype(np.int64)
    chosen = config.Classifier(loss=loss, objectness=objectness, normalized=normalized)
    return build_classifier(chosen, 64, Frequencies(100_000, images.copy(), images * 2))


# --- the formulas ---


@heads
def test_loss_is_the_formula(loss: str, objectness: bool, normalized: bool) -> None:
    for seed in SEEDS:
        case = made_case(loss, objectness=objectness, normalized=normalized, seed=seed)
        expected = case.expected_loss()(case.expected_logits(*arrays(case)))
        assert case.loss().item() == pytest.approx(expected, rel=1e-10)


@heads
def test_slopes_are_the_formulas(loss: str, objectness: bool, normalized: bool) -> None:
    case = made_case(loss, objectness=objectness, normalized=normalized)
    case.loss().backward()
    layer = case.classifier.layer
    formula = case.expected_loss()
    at = arrays(case)
    for place, tensor in enumerate((case.x, layer.weight, layer.bias)):

        def moved(value: Floats, place: int = place) -> float:
            parts = [value if i == place else part for i, part in enumerate(at)]
            return formula(case.expected_logits(*parts))

        slopes = reference.gradient(moved, at[place])
        assert tensor.grad is not None
        np.testing.assert_allclose(tensor.grad.numpy(), slopes, rtol=1e-6, atol=1e-7)


@heads
def test_scores_are_the_formula(loss: str, objectness: bool, normalized: bool) -> None:
    case = made_case(loss, objectness=objectness, normalized=normalized)
    scores = case.classifier.scores(case.classifier(case.x)).detach().numpy()
    expected = case.expected_scores(case.expected_logits(*arrays(case)))
    assert scores.shape == (len(LABEL), CLASSES)
    np.testing.assert_allclose(scores, expected, rtol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_extreme_logits_have_their_exact_loss(loss: str) -> None:
    case = made_case(loss, objectness=True)
    logits = case.classifier(case.x) * 60
    actual = case.loss_of(logits)
    expected = case.expected_loss()(logits.detach().numpy())
    assert actual.item() == pytest.approx(expected, rel=1e-10)


# --- what rows count, and how ---


@heads
def test_without_samples_the_loss_and_its_slopes_are_0(
    loss: str, objectness: bool, normalized: bool
) -> None:
    for label in ([-1] * 8, []):
        case = made_case(loss, objectness=objectness, normalized=normalized, label=label, count=0.0)
        value = case.loss()
        value.backward()
        assert value.item() == 0
        for tensor in (case.x, *case.classifier.parameters()):
            assert tensor.grad is not None
            assert not tensor.grad.any()


@heads
def test_background_alone(loss: str, objectness: bool, normalized: bool) -> None:
    case = made_case(loss, objectness=objectness, normalized=normalized, label=[CLASSES] * 8)
    expected = case.expected_loss()(case.expected_logits(*arrays(case)))
    assert case.loss().item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_count_is_1_at_least(loss: str) -> None:
    none, one = made_case(loss, count=0.0), made_case(loss, count=1.0)
    assert none.loss().item() == one.loss().item()


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - set(RANDOM)))
@given(
    label=st.lists(st.integers(-1, CLASSES), min_size=1, max_size=9),
    objectness=st.booleans(),
    data=st.data(),
)
@FEW
def test_order_of_rows_and_rows_that_are_no_samples_change_nothing(
    loss: str, label: list[int], objectness: bool, data: st.DataObject
) -> None:
    case = made_case(loss, objectness=objectness, label=label, images=1)
    before = case.loss().item()
    order = torch.tensor(data.draw(st.permutations(range(len(label)))))
    shuffled = replace(case, x=case.x[order], label=case.label[order])
    assert shuffled.loss().item() == pytest.approx(before, rel=1e-12)
    padding = torch.full((3, case.x.shape[1]), 100.0)
    padded = replace(
        case,
        x=torch.cat([padding, case.x]),
        label=torch.cat([torch.full((3,), -1), case.label]),
    )
    assert padded.loss().item() == pytest.approx(before, rel=1e-12)


@pytest.mark.parametrize("loss", RANDOM)
def test_features_of_rows_that_are_no_samples_change_nothing(loss: str) -> None:
    case = made_case(loss, objectness=True)
    other = torch.where((case.label == -1)[:, None], 100.0, case.x)
    assert replace(case, x=other).loss().item() == case.loss().item()


# --- scores ---


@pytest.mark.parametrize("loss", LOSSES)
@given(
    rows=st.lists(
        st.lists(st.floats(-1e4, 1e4, width=32), min_size=12, max_size=12), min_size=1, max_size=4
    ),
    objectness=st.booleans(),
)
@FEW
def test_scores_are_between_0_and_1(loss: str, rows: list[list[float]], objectness: bool) -> None:
    chosen = replace(SETTINGS, loss=loss, objectness=objectness)
    classifier = build_classifier(chosen, 4, FREQUENCIES)
    scores = classifier.scores(torch.tensor(rows)[:, : classifier.layer.out_features])
    assert scores.dtype == torch.float32
    assert bool(((scores >= 0) & (scores <= 1)).all())
    if loss == "softmax":
        assert scores.sum(dim=1).max() <= 1 + 1e-6


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {"balanced_groups"}))
def test_objectness_multiplies(loss: str) -> None:
    case, plain = made_case(loss, objectness=True), made_case(loss)
    logits = case.classifier(case.x)
    expected = plain.classifier.scores(logits[:, :-1]) * torch.sigmoid(logits[:, -1:])
    assert torch.equal(case.classifier.scores(logits), expected)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("objectness", [False, True])
def test_a_higher_logit_is_a_higher_score(loss: str, objectness: bool) -> None:
    case = made_case(loss, objectness=objectness)
    logits = case.classifier(case.x).detach().requires_grad_()
    columns = set()
    for name in range(CLASSES):
        slope = torch.autograd.grad(case.classifier.scores(logits)[:, name].sum(), logits)[0]
        rising = (slope > 0).all(dim=0)
        if case.classifier.objectness:
            assert rising[-1]
            rising = rising[:-1]
        assert rising.sum() == 1
        columns.add(int(rising.nonzero()))
    assert len(columns) == CLASSES


def test_objectness_is_a_part_of_balanced_groups() -> None:
    without, with_it = made_case("balanced_groups"), made_case("balanced_groups", objectness=True)
    assert without.classifier.layer.out_features == with_it.classifier.layer.out_features
    assert without.loss().item() == with_it.loss().item()


# --- building ---


@heads
def test_weights_and_biases_at_the_beginning(loss: str, objectness: bool, normalized: bool) -> None:
    classifier = large(loss, objectness=objectness, normalized=normalized)
    prior = {"equalization": 0.001, "sigmoid": 0.01, "federated": 0.01}.get(loss, 0.5)
    first = classifier.layer.weight.detach().clone()
    with torch.no_grad():
        classifier.layer.bias.fill_(3)
    classifier.reset()
    weight, bias = classifier.layer.weight.detach(), classifier.layer.bias.detach()
    assert not torch.equal(weight, first)
    assert weight.std().item() == pytest.approx(0.01, rel=0.02)
    assert abs(weight.mean().item()) < 1e-4
    has_objectness = objectness or loss == "balanced_groups"
    extra = {"softmax": 1, "balanced_groups": 4}.get(loss, 0)
    assert len(bias) == 1203 + extra + has_objectness
    torch.testing.assert_close(
        torch.sigmoid(bias[:-1] if has_objectness else bias), torch.full((1203 + extra,), prior)
    )
    if has_objectness:
        assert bias[-1] == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_temperature_is_the_papers_unless_given(loss: str) -> None:
    chosen = replace(SETTINGS, loss=loss, normalized=True)
    for given_one, expected in ((0.0, TEMPERATURE[loss]), (7.0, 7.0)):
        layer = build_classifier(replace(chosen, temperature=given_one), 4, FREQUENCIES).layer
        assert isinstance(layer, NormalizedLinear)
        assert layer.temperature == expected


@pytest.mark.parametrize("loss", LOSSES)
def test_counts_may_be_any_view(loss: str) -> None:
    counts = np.array([5000, 7, 50], dtype=np.int64)[::-1]
    counts.flags.writeable = False
    chosen = replace(SETTINGS, loss=loss)
    as_view = build_classifier(chosen, 4, Frequencies(9000, counts, counts))
    copied = build_classifier(chosen, 4, Frequencies(9000, counts.copy(), counts.copy()))
    for one, other in zip(as_view.buffers(), copied.buffers(), strict=True):
        assert torch.equal(one, other)


def test_only_weights_and_biases_are_saved() -> None:
    for loss in LOSSES:
        assert sorted(made_case(loss).classifier.state_dict()) == ["layer.bias", "layer.weight"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"loss": "focal"}, 'classifier.loss is "focal", expected one of softmax, sigmoid, '),
        ({"temperature": -1.0}, "classifier.temperature is -1.0, expected a number above 0"),
        ({"loss": "federated", "sampled_classes": 0}, "sampled_classes is 0, expected 1 or more"),
        ({"loss": "balanced_groups", "others_ratio": -1.0}, "others_ratio is -1.0, expected 0 or"),
    ],
)
def test_settings_that_cannot_be(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        build_classifier(replace(SETTINGS, **wrong), 4, FREQUENCIES)


# --- sizes and precision ---


@pytest.mark.parametrize("loss", LOSSES)
def test_one_class(loss: str) -> None:
    one = np.array([4], dtype=np.int64)
    chosen = config.Classifier(loss=loss, objectness=True, normalized=True)
    classifier = build_classifier(chosen, 8, Frequencies(10, one, one))
    logits = classifier(torch.randn(6, 8))
    value = classifier.loss(logits, torch.tensor([0, 1, -1, 1, 0, 1]), torch.tensor(5.0), SEED)
    value.backward()
    assert torch.isfinite(value)
    assert value > 0
    assert classifier.scores(logits).shape == (6, 1)


@heads
def test_lvis_sizes_under_autocast(loss: str, objectness: bool, normalized: bool) -> None:
    classifier = large(loss, objectness=objectness, normalized=normalized)
    torch.manual_seed(1)
    label = torch.where(torch.rand(512) < 0.25, torch.randint(0, 1203, (512,)), 1203)
    x = torch.randn(512, 64)
    values = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            logits = classifier(x)
            value = classifier.loss(logits, label, torch.tensor(512.0), SEED)
            assert value.dtype == torch.float32
            assert classifier.scores(logits).dtype == torch.float32
        values.append(value)
    assert torch.isfinite(values[0])
    assert values[0] == values[1]
    coarse = classifier.loss(logits.bfloat16(), label, torch.tensor(512.0), SEED)
    assert coarse.dtype == torch.float32
    torch.testing.assert_close(coarse, values[0], rtol=0.02, atol=0)


@heads
def test_nothing_waits_for_the_device(loss: str, objectness: bool, normalized: bool) -> None:
    """Tensors without values raise if a value is requested."""
    classifier = large(loss, objectness=objectness, normalized=normalized)
    with FakeTensorMode(allow_non_fake_inputs=True):
        x = torch.randn(16, 64, requires_grad=True)
        label = torch.randint(-1, 1204, (16,))
        logits = classifier(x)
        classifier.loss(logits, label, torch.ones(()), torch.arange(8)).backward()
        assert classifier.scores(logits).shape == (16, 1203)
        with pytest.raises(DataDependentOutputException):
            label.sum().item()
