"""Packages that extras install, and what to say where one is missing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib import import_module

from lvdet.errors import MissingPackageError

#: The modules that each extra brings, as they are imported.
MODULES = {
    "parquet": ("pyarrow",),
    "report": ("plotly", "jinja2", "markupsafe", "PIL"),
    "figures": ("kaleido",),
    "remote": ("pyarrow", "huggingface_hub"),
    "cluster": ("ray", "pyarrow"),
    "train": ("torch", "torchvision", "safetensors", "PIL"),
}
#: Packages that pip knows by another name.
_PACKAGES = {"PIL": "Pillow"}


@contextmanager
def needed(modules: Collection[str], what: str, install: str) -> Iterator[None]:
    """Around imports, or a function that imports: where one of these modules is missing, says what
    needs it and how to install it. `what` begins the sentence, `install` ends it."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if isinstance(error, MissingPackageError) or module not in modules:
            raise
        package = _PACKAGES.get(module, module)
        raise MissingPackageError(f"{what} needs {package}: {install}", name=module) from None


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """`needed` for the modules of an extra."""
    with needed(MODULES[name], what, f"pip install 'lvdet[{name}]'"):
        yield


def has_extra(name: str) -> bool:
    """Whether all modules of an extra can be imported."""
    try:
        for module in MODULES[name]:
            import_module(module)
    except ModuleNotFoundError:
        return False
    return True
