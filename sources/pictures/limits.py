"""What a picture may cost to decode, judged by its header and its bytes. Nothing is decoded here.

A file of a few kilobytes can take minutes and gigabytes: a JPEG of thousands of scans, an animation of thousands of
large frames, a TIFF whose tiles are larger than the picture."""

from __future__ import annotations

import re
from math import ceil

from PIL import Image

MAX_PIXELS = 64_000_000
MAX_SCANS = 100  # of a JPEG; programs write about ten
MAX_SCANNED_PIXELS = 16 * MAX_PIXELS  # pixels times scans
MAX_MOVING_PIXELS = 32 * MAX_PIXELS  # pixels times frames
MAX_BLOCKS = 4_000_000  # of a GIF: with 255 bytes in each, as programs write them, it may have a gigabyte
MAX_COMMENT_BLOCKS = 10_000  # in a row, outside of frames: Pillow takes quadratic time for them
MAX_TIFF_BYTES = 512 * 2**20  # of all strips or tiles, decoded
STORED_BYTES = 4  # that Pillow uses for a pixel
# Others (JPEG, LZMA, Zstandard … inside a TIFF) have limits of their own, or none.
PLAIN_TIFF = (1, 2, 3, 4, 5, 8, 32773, 32946)

_BITS, _COMPRESSION, _SAMPLES, _TILE_WIDTH, _TILE_LENGTH = 258, 259, 277, 322, 323
_MARKER = re.compile(rb"\xff([^\x00\xd0-\xd7\xff])", re.DOTALL)
_GIF_PART = re.compile(rb"[!,;]")


class TooCostly(Exception):
    """Why a picture is not decoded, in a few words."""


def check_cost(image: Image.Image, content: bytes) -> None:
    """Raises TooCostly. The image is opened, not loaded."""
    width, height = image.size
    pixels = max(width * height, 1)
    if pixels > MAX_PIXELS:
        raise TooCostly(f"image has more than {MAX_PIXELS // 1_000_000} million pixels: make it smaller")
    size = f"{width} × {height} pixels"
    if image.format in ("JPEG", "MPO"):
        most = min(MAX_SCANS, MAX_SCANNED_PIXELS // pixels)
        if has_more_scans(content, most):
            raise TooCostly(f"JPEG has more than {most} scans of {size}: save it again")
    elif image.format in ("GIF", "WEBP"):
        most = MAX_MOVING_PIXELS // pixels
        frames = getattr(image, "n_frames", 1) if image.format == "WEBP" else 0
        if frames > most or (image.format == "GIF" and has_more_frames(content, most)):
            raise TooCostly(f"animation has more than {most} frames of {size}: make it shorter or smaller")
    elif image.format == "TIFF" and decoded_bytes(image) > MAX_TIFF_BYTES:
        raise TooCostly(f"TIFF takes more than {MAX_TIFF_BYTES // 2**20} MB to decode: save it again")


def check_blocks(content: bytes) -> None:
    """Raises TooCostly for a GIF that takes long even to open."""
    if content[:3] == b"GIF" and len(content) > 13:
        has_more_frames(content, MAX_BLOCKS)


def decoded_bytes(image: Image.Image) -> int:
    """At most how much memory decoding takes: for the pixels, and for the strips or tiles of a TIFF."""
    width, height = image.size
    needed = width * height * STORED_BYTES
    tags = getattr(image, "tag_v2", None)
    if image.format != "TIFF" or tags is None:
        return needed
    bits = tags.get(_BITS, (1,))
    per_pixel = max(sum(bits), int(tags.get(_SAMPLES, 1)) * max(bits)) / 8
    if _TILE_WIDTH in tags:
        across, down = int(tags[_TILE_WIDTH]), int(tags[_TILE_LENGTH])
        width, height = across * ceil(width / across), down * ceil(height / down)
    strips: int = ceil(width * height * per_pixel)
    return max(needed, strips)


def is_risky(image: Image.Image) -> bool:
    """Whether the cost of decoding is not known from the header: that is done in a process of its own."""
    if image.format in ("AVIF", "HEIF"):
        return True
    return image.format == "TIFF" and image.tag_v2.get(_COMPRESSION, 1) not in PLAIN_TIFF  # type: ignore[attr-defined]


def has_more_scans(content: bytes, most: int) -> bool:
    """Whether a JPEG has more than `most` scans. They are counted only where there may be so many."""
    if content.count(b"\xff\xda") <= most:
        return False
    at, scans = 2, 0
    while (marker := _MARKER.search(content, at)) is not None:
        code, at = marker[1], marker.end()
        if code == b"\xd9":
            break
        if code not in (b"\x01", b"\xd8"):
            at += max(int.from_bytes(content[at : at + 2], "big"), 2)
        scans += code == b"\xda"
        if scans > most:
            return True
    return False


def has_more_frames(content: bytes, most: int) -> bool:
    """Whether a GIF has more than `most` frames. Raises TooCostly where it has too many blocks to be counted."""
    at, frames, blocks = 13 + _colours(content, 10), 0, 0
    try:
        while (part := _GIF_PART.search(content, at)) is not None and part[0] != b";" and frames <= most:
            at = part.end() + 1
            if part[0] == b",":
                frames += 1
                at += 9 + _colours(content, at + 7)
            last = MAX_BLOCKS if part[0] == b"," else min(MAX_BLOCKS, blocks + MAX_COMMENT_BLOCKS)
            while size := content[at]:
                at += size + 1
                blocks += 1
                if blocks > last:
                    raise TooCostly("GIF consists of too many small blocks: save it again")
            at += 1
            blocks += 1
    except IndexError:  # it ends in the middle
        pass
    return frames > most


def _colours(content: bytes, flags: int) -> int:
    """The length of the colour table that follows, by its flags."""
    return 3 * 2 ** ((content[flags] & 7) + 1) if content[flags] & 0x80 else 0
