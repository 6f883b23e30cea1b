"""What all tests share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Examples are drawn from a fixed seed: a failure seen once is seen again.
settings.register_profile(
    "lvdet", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("lvdet")
