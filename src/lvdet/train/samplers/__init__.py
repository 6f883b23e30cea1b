"""Which image comes next: uniform, repeat factor and class-aware sampling."""

from lvdet.train.samplers.build import build_sampler
from lvdet.train.samplers.sampler import Sampler
from lvdet.train.samplers.stream import stream

__all__ = ["Sampler", "build_sampler", "stream"]
