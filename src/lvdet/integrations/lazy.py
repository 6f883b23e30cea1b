"""Mappings and lists whose values are computed on access."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, overload


class LazyMapping(Mapping[Any, Any]):
    """A mapping that computes each value on first access; without a function, it holds the given
    values, for code that rebuilds a mapping by its type."""

    def __init__(self, keys: Collection[Any], make: Callable[[Any], Any] | None = None) -> None:
        self._keys = keys
        self._make = keys.__getitem__ if make is None and isinstance(keys, Mapping) else make
        self._made: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        if key not in self._made:
            if key not in self._keys or self._make is None:
                raise KeyError(key)
            self._made[key] = self._make(key)
        return self._made[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class LazyList(Sequence[Any]):
    """A list that computes each item on first access."""

    def __init__(self, count: int, make: Callable[[int], Any]) -> None:
        self._items = LazyMapping(range(count), make)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        places = range(len(self))[place]
        if isinstance(places, range):
            return [self._items[at] for at in places]
        return self._items[places]

    def __len__(self) -> int:
        return len(self._items)


class Pairs(Collection[tuple[Any, Any]]):
    """Every pair of image and class, without storing a list."""

    def __init__(self, images: Sequence[Any], classes: Sequence[Any]) -> None:
        self._images, self._classes = dict.fromkeys(images), dict.fromkeys(classes)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, tuple) and key[0] in self._images and key[1] in self._classes

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return product(self._images, self._classes)

    def __len__(self) -> int:
        return len(self._images) * len(self._classes)
