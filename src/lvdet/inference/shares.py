"""Divides a prediction among processes, and joins the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from lvdet.errors import AnotherProcessError
from lvdet.files.convert import convert
from lvdet.inference.batches import Image
from lvdet.inference.box_file import rows_by_image
from lvdet.inference.settings import Settings
from lvdet.training.loop.processes import Process
from lvdet.writers.top_k_writer import TopKWriter


def share(images: Sequence[Image], batch: int, process: Process) -> Sequence[Image]:
    """The images of a process: complete consecutive batches, about as many as any other process
    has. Batches are thus the same for any number of processes."""
    batches = -(-len(images) // batch)
    begin, end = (batches * rank // process.world for rank in (process.rank, process.rank + 1))
    return images[begin * batch : end * batch]


def of_process(path: Path, rank: int) -> Path:
    """A process's part of a file."""
    return path.with_name(f"{path.stem}.{rank}{path.suffix}")


def parts(path: Path, process: Process) -> list[Path]:
    """The parts of a file in the order of the processes; with one process, the file itself."""
    if process.world == 1:
        return [path]
    return [of_process(path, rank) for rank in range(process.world)]


@contextmanager
def together(process: Process, failed: Path) -> Iterator[None]:
    """Like `Process.together`; a failing process also leaves a file that the others check for."""
    with process.together():
        try:
            yield
        except AnotherProcessError:
            raise
        except Exception:
            if process.world > 1:
                with suppress(OSError):
                    failed.touch()
            raise


def look_for_failure(process: Process, failed: Path) -> None:
    """Raises an error if another process has failed."""
    if process.world > 1 and failed.exists():
        raise AnotherProcessError("another process failed")


def join_boxes(
    sources: Sequence[Path], target: Path, settings: Settings, category_ids: Sequence[int]
) -> None:
    """Writes the boxes of all processes that the budgets keep."""
    with TopKWriter(
        target,
        dets_per_class=settings.dets_per_class,
        dets_per_image=settings.dets_per_image,
        category_ids=category_ids,
        overwrite=True,
    ) as writer:
        for source in sources:
            for image_id, rows in rows_by_image(source, category_ids):
                if image_id not in writer:
                    writer.add(image_id, rows.box, rows.score, rows.label)


def join_masks(sources: Sequence[Path], target: Path) -> None:
    """Writes the detections of all processes, all of which the budgets keep."""
    convert([*sources], target)
