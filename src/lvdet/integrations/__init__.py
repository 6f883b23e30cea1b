"""Drop-in replacements for `pycocotools` and `lvis`."""

from lvdet.integrations.patching import patch, unpatch

__all__ = ["patch", "unpatch"]
