"""Adds images to a writer and says which, to be killed by `test_writer_kill`.

python add_until_killed.py TARGET IMAGES SEED PER_CLASS
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import lvdet
from lvdet.writers import journal, top_k_writer
from writers.added_images import columns, random_images


def main(target: str, images: int, seed: int, dets_per_class: int) -> None:
    top_k_writer.COMPACT_ROWS, journal.FILE_BYTES = 60, 4000
    sink = lvdet.TopKWriter(target, dets_per_class=dets_per_class)
    say("begun")
    for image_id, records in random_images(images, seed):
        if image_id not in sink:
            sink.add(image_id, *columns(records))
            say(str(image_id))
    say("closing")
    sink.close()
    say("closed")


def say(text: str) -> None:
    os.write(1, text.encode() + b"\n")


main(sys.argv[1], *map(int, sys.argv[2:]))
