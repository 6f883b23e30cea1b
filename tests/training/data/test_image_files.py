"""Image files of all kinds."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from lvdet.errors import InputError
from lvdet.training.data.image_files import read_picture


@pytest.fixture
def grey():
    return np.random.default_rng(0).integers(0, 256, (6, 9), dtype=np.uint8)


def test_grey_and_transparency(tmp_path, grey):
    rgb = np.stack([grey, grey.max() - grey, grey // 2], axis=2)
    alpha = np.concatenate([rgb, grey[:, :, None] // 3], axis=2)
    for name, image, expected in (
        ("grey", Image.fromarray(grey), np.stack([grey] * 3, axis=2)),
        ("rgb", Image.fromarray(rgb), rgb),
        ("rgba", Image.fromarray(alpha), rgb),
        ("bilevel", Image.fromarray(grey > 99), np.stack([(grey > 99) * 255] * 3, axis=2)),
        ("grey-alpha", Image.fromarray(alpha).convert("LA"), None),
    ):
        image.save(tmp_path / f"{name}.png")
        read = read_picture(tmp_path / f"{name}.png")
        assert read.mode == "RGB"
        assert read.size == (9, 6)
        if expected is not None:
            np.testing.assert_array_equal(np.asarray(read), expected)


def test_palettes(tmp_path, grey):
    image = Image.fromarray(grey % 4).convert("P")
    palette = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120]
    image.putpalette(palette)
    expected = np.array(palette).reshape(-1, 3)[np.asarray(image)]
    image.save(tmp_path / "a.png")
    np.testing.assert_array_equal(np.asarray(read_picture(tmp_path / "a.png")), expected)
    image.save(tmp_path / "b.png", transparency=b"\x00\x80\xff\xff")
    np.testing.assert_array_equal(np.asarray(read_picture(tmp_path / "b.png")), expected)
    image.save(tmp_path / "c.gif", save_all=True, append_images=[image.rotate(180)])
    np.testing.assert_array_equal(np.asarray(read_picture(tmp_path / "c.gif")), expected)


def test_sixteen_bits_are_scaled_not_cut(tmp_path, grey):
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "a.png")
    Image.fromarray(grey.astype(np.int32) * 256).save(tmp_path / "b.tiff")
    Image.fromarray(grey.astype(np.float32)).save(tmp_path / "c.tiff")
    for name in ("a.png", "b.tiff", "c.tiff"):
        read = np.asarray(read_picture(tmp_path / name))
        np.testing.assert_array_equal(read, np.stack([grey] * 3, axis=2))


def test_four_colours_and_rotation_in_jpeg(tmp_path):
    image = Image.new("RGB", (16, 8), (200, 40, 90))
    image.convert("CMYK").save(tmp_path / "a.jpg", quality=95)
    read = np.asarray(read_picture(tmp_path / "a.jpg")).astype(int)
    assert abs(read - [200, 40, 90]).max() < 12
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    image.save(tmp_path / "b.jpg", exif=exif)
    assert read_picture(tmp_path / "b.jpg").size == (16, 8)


def test_files_that_are_no_images(tmp_path, grey):
    with pytest.raises(InputError, match=r"a\.png: no such file"):
        read_picture(tmp_path / "a.png")
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"a\.png: cannot read the image: "):
        read_picture(tmp_path / "a.png")
    big = np.random.default_rng(0).integers(0, 256, (99, 99, 3), dtype=np.uint8)
    Image.fromarray(big).save(tmp_path / "b.jpg")
    Image.fromarray(big).save(tmp_path / "b.png")
    for name in ("b.jpg", "b.png"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(InputError, match="cannot read the image") as error:
            read_picture(tmp_path / name)
        assert "\n" not in str(error.value)
