"""Which image comes next: uniform, repeat factor and class-aware sampling."""

from lvdet.training.samplers.build_sampler import build_sampler
from lvdet.training.samplers.sampler import Sampler, stream

__all__ = ["Sampler", "build_sampler", "stream"]
