"""The tables of shards, read by the tasks of a cluster and given out in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from lvdet.cluster.engine import Reference, cpus, fetch, put, start
from lvdet.cluster.table_tasks import (
    Conversion,
    TableFacts,
    changed_table,
    chosen_rows,
    read_table,
)
from lvdet.files.collect import MaskedFiles
from lvdet.files.progress import Update
from lvdet.files.remote_path import InputPath
from lvdet.tables.detections import Detections

#: Shards read ahead of the one that is written, for each CPU.
_AHEAD = 2


def shard_tables(
    job: Conversion, paths: Sequence[InputPath], update: Update | None
) -> Iterator[tuple[Detections, int]]:
    """The tables to write, and how many rows were read for each."""
    return _best_tables(job, paths, update) if job.budgets else _all_tables(job, paths, update)


def _all_tables(
    job: Conversion, paths: Sequence[InputPath], update: Update | None
) -> Iterator[tuple[Detections, int]]:
    known, masked = put(job), MaskedFiles()
    under_way: deque[tuple[Reference, Reference]] = deque()
    waiting = iter(paths)
    for done, path in enumerate(paths):
        for one in islice(waiting, max(_AHEAD * cpus() - len(under_way), 0)):
            facts, table = start(read_table, known, one, returns=2)
            under_way.append((facts, start(changed_table, known, table, None, True)))
        facts, changed = under_way.popleft()
        found: TableFacts = fetch(facts)
        _note(masked, path, found)
        yield fetch(changed), found.found
        if update is not None:
            update(done + 1, len(paths))


def _best_tables(
    job: Conversion, paths: Sequence[InputPath], update: Update | None
) -> Iterator[tuple[Detections, int]]:
    known, masked = put(job), MaskedFiles()
    under_way: deque[tuple[Reference, Reference]] = deque()
    tables: list[Reference] = []
    every: list[TableFacts] = []
    waiting = iter(paths)
    for path in paths:
        for one in islice(waiting, max(_AHEAD * cpus() - len(under_way), 0)):
            under_way.append(start(read_table, known, one, returns=2))
        facts, table = under_way.popleft()
        every.append(fetch(facts))
        tables.append(table)
        _note(masked, path, every[-1])
        if update is not None:
            update(len(tables), len(paths))
    boxes_given = any(one.rows and one.boxes_given for one in every)
    for found, table, rows in zip(every, tables, chosen_rows(every, job.budgets), strict=True):
        yield fetch(start(changed_table, known, table, rows, boxes_given)), found.found


def _note(masked: MaskedFiles, path: InputPath, found: TableFacts) -> None:
    if found.found:
        masked.note(path, found.masks)
