"""Columns of a Parquet table as arrays, or an error that names the file and the column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from askance.errors import DataError
from askance.images import SIDE, decode_image


def read_parquet(path: Path, remedy: str = "delete it and fetch it again") -> Any:
    """The table at `path`; an error names a file that is none, and what to do about it."""
    try:
        table = pq.read_table(path)
        _ = table.column_names  # which may be no UTF-8
        return table
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: cut short, corrupt or not Parquet ({error}); {remedy}") from error


def column(table: Any, name: str, where: str) -> Any:
    """One column as one array without nulls."""
    if name not in table.column_names:
        raise DataError(f"{where}: no column {name!r}; it has {', '.join(table.column_names)}")
    values = table.column(name).combine_chunks()
    if values.null_count:
        first = values.is_null().index(True).as_py()
        raise DataError(
            f"{where}: {values.null_count} empty values in column {name!r}, the first in row {first}; "
            f"fill them, or leave those rows out"
        )
    try:
        values.validate(full=True)  # texts that are no UTF-8, lists that end outside the file
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{where}: column {name!r} is damaged, or its texts are not UTF-8 ({error})"
        ) from error
    return values


def integers(table: Any, name: str, where: str) -> NDArray[np.int64]:
    """A column of whole numbers."""
    values = column(table, name, where)
    if not pa.types.is_integer(values.type):
        raise DataError(f"{where}: column {name!r} must hold whole numbers, got {values.type}")
    return values.to_numpy(zero_copy_only=False).astype(np.int64)


def features(table: Any, names: list[str], where: str) -> NDArray[np.float32]:
    """Columns of whole numbers side by side, (N, D)."""
    return np.stack([integers(table, name, where) for name in names], axis=1).astype(np.float32)


def lists(
    table: Any, name: str, where: str, *, whole: bool = False, length: int | None = None
) -> NDArray[Any]:
    """A column of lists of numbers, all of one length, (N, D): float32, or float64 if `whole`."""
    rows = column(table, name, where)
    kind = getattr(rows.type, "value_type", rows.type)
    is_number = pa.types.is_integer(kind) or (pa.types.is_floating(kind) and not whole)
    if not pa.types.is_nested(rows.type) or not is_number:
        numbers = "whole numbers" if whole else "numbers"
        raise DataError(f"{where}: column {name!r} must hold lists of {numbers}, got {rows.type}")
    lengths = np.unique(pc.list_value_length(rows).to_numpy()).tolist()
    if len(lengths) != 1 or lengths[0] != (length or lengths[0]) or lengths[0] == 0:
        wanted = f"{length} numbers a row"
        if length is None:
            wanted = "as many numbers in every row, at least one"
        raise DataError(
            f"{where}: column {name!r} must hold {wanted}; it has {', '.join(map(str, lengths[:5]))}"
        )
    values = rows.flatten()
    flat = values.to_numpy(zero_copy_only=False).astype(np.float64 if whole else np.float32)
    if values.null_count or not np.isfinite(flat).all():
        raise DataError(f"{where}: column {name!r} holds empty, NaN or infinite numbers")
    return flat.reshape(-1, lengths[0])


def written_lists(cells: list[str], name: str, where: str) -> NDArray[np.float64]:
    """Lists of numbers that were written as texts, "[0.1, 0.2]" or "[0.1 0.2]", as (N, D)."""
    rows = []
    for row, cell in enumerate(cells):
        text = cell.strip()
        try:
            if not (text.startswith("[") and text.endswith("]")):
                raise ValueError
            rows.append([float(number) for number in text[1:-1].replace(",", " ").split()])
        except ValueError:
            why = "; NumPy cut it short, so write lists" if "..." in text else ""
            raise DataError(
                f"{where}: column {name!r}, row {row} must hold a number, or a list of numbers such as "
                f"[0.1, 0.2], got {text[:40]!r}{why}"
            ) from None
        if len(rows[row]) != len(rows[0]) or not rows[row]:
            raise DataError(
                f"{where}: column {name!r} must hold as many numbers in every row, at least one; row 0 "
                f"has {len(rows[0])}, row {row} has {len(rows[row])}"
            )
    return np.array(rows, dtype=np.float64)


def byte_images(table: Any, where: str) -> NDArray[np.uint8]:
    """The column `image`, of 784 bytes of 28×28 pixels, as an array (N, 28, 28)."""
    return fixed(table, where, name="image", dtype=np.dtype(np.uint8), shape=(28, 28))


def fixed(
    table: Any, where: str, *, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> NDArray[Any]:
    """A column of byte strings of one length as an array (N, *shape)."""
    items = _byte_strings(table, name, where)
    wanted = int(np.prod(shape)) * dtype.itemsize
    wrong = next((item for item in items if len(item) != wanted), None)
    if wrong is not None:
        raise DataError(f"{where}: an item of {len(wrong)} bytes where {wanted} were expected")
    return np.frombuffer(b"".join(items), dtype=dtype).reshape(-1, *shape)


def images(table: Any, where: str) -> NDArray[np.uint8]:
    """The column `image`, of image files of 32×32 pixels, as an array (N, 32, 32, 3)."""
    files = _byte_strings(table, "image", where)
    out = np.empty((len(files), SIDE, SIDE, 3), dtype=np.uint8)
    for row, data in enumerate(files):
        image = decode_image(data, f"{where}, row {row}", side=None, most=SIDE * SIDE)
        if image.shape != out.shape[1:]:
            raise DataError(f"{where}, row {row}: an image of {image.shape[:2]}, not 32×32")
        out[row] = image
    return out


def image_files(table: Any, where: str) -> list[bytes]:
    """The column `image`, of image files of any size, as they are."""
    return _byte_strings(table, "image", where)


def texts(table: Any, where: str) -> list[str]:
    """The column `text`."""
    values = column(table, "text", where)
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise DataError(f"{where}: column 'text' must hold texts, got {values.type}")
    return list(values.to_pylist())


def _byte_strings(table: Any, name: str, where: str) -> list[bytes]:
    values = column(table, name, where)
    kind = values.type
    binary = (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
    if not binary:
        raise DataError(f"{where}: column {name!r} must hold bytes, got {kind}")
    return list(values.to_pylist())
