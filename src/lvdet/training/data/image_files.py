"""Reads image files as RGB."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from PIL import Image

from lvdet.bounds import PICTURE_PIXELS
from lvdet.errors import InputError


def read_picture(path: Path) -> Image.Image:
    """An image file as 8-bit RGB: grey, palettes, CMYK, transparency and 16 bits are converted.

    Rotation in EXIF is not followed: boxes and masks of COCO and LVIS are of the image as stored.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata, which does not matter here
            with Image.open(path) as image:
                width, height = image.size
                if width * height > PICTURE_PIXELS:
                    raise ValueError(
                        f"{width:,} x {height:,} pixels, expected at most {PICTURE_PIXELS:,}"
                    )
                return _rgb(image)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except Exception as error:  # decoders raise whatever they stumble over
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path}: cannot read the image: {reason}") from None


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16 bits, which Pillow would clip at 255
        grey = np.asarray(image).astype(np.int64) >> 8
        image = Image.fromarray(grey.clip(0, 255).astype(np.uint8))
    elif image.mode == "F":
        image = Image.fromarray(np.asarray(image).clip(0, 255).astype(np.uint8))
    elif image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    return image.convert("RGB")
