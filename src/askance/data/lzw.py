"""Files of the Unix `compress` program (.Z), which UCI still serves.

Codes grow from 9 to at most 16 bits. The writer packs codes in groups of eight, so that when the width
changes, what is left of the group is padding.
"""

from __future__ import annotations

from askance.errors import DataError

_MAGIC = b"\x1f\x9d"
_CLEAR = 256


def uncompressed(data: bytes, name: str, *, limit: int) -> bytes:
    """The contents of a .Z file, refused where they exceed `limit` bytes."""
    if data[:2] != _MAGIC or len(data) < 3:
        raise DataError(f"{name}: not a file of the compress program")
    most_bits, blocks = data[2] & 0x1F, bool(data[2] & 0x80)
    if not 9 <= most_bits <= 16:
        raise DataError(f"{name}: codes of {most_bits} bits; compress writes 9 to 16")
    fresh = [bytes((byte,)) for byte in range(256)] + ([b""] if blocks else [])
    table, out, size = list(fresh), [], 0
    width, start, position, end = 9, 24, 24, 8 * len(data)
    previous: bytes | None = None
    while position + width <= end:
        byte, shift = divmod(position, 8)
        code = int.from_bytes(data[byte : byte + 4], "little") >> shift & (1 << width) - 1
        position += width
        if code == _CLEAR and blocks:
            table, previous = list(fresh), None
            start = position = _group_end(start, position, width)
            width = 9
            continue
        if code < len(table):
            word = table[code]
        elif code == len(table) and previous is not None:
            word = previous + previous[:1]
        else:
            raise DataError(f"{name}: corrupt, code {code} of {len(table)} known")
        if previous is not None and len(table) < 1 << most_bits:
            table.append(previous + word[:1])
        previous = word
        out.append(word)
        size += len(word)
        if size > limit:
            raise DataError(f"{name}: unpacks to more than {limit:,} bytes")
        # The reader is one entry behind the writer, which widens when its table outgrows the codes.
        if len(table) >= 1 << width and width < most_bits:
            start = position = _group_end(start, position, width)
            width += 1
    return b"".join(out)


def _group_end(start: int, position: int, width: int) -> int:
    group = 8 * width
    return start + -(-(position - start) // group) * group
