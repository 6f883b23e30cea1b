"""Made-up data with known properties: the simulated long-tail detector."""

from __future__ import annotations

from lvdet.synth.simulate import simulate

__all__ = ["simulate"]
