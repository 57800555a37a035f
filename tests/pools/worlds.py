"""Small pools on disk, and what they hold."""

import io
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image

import askance
from askance.pools import Columns, ParquetSource

CLASSES, FEATURES = 3, 5
VECTORS = Columns(features=("features",), logits=("logits",))
LABELED = Columns(features=("features",), logits=("logits",), label="label")


def embedding(rows, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows, FEATURES, generator=generator, dtype=dtype)
    return askance.Embedding(torch.randn(rows, CLASSES, generator=generator, dtype=dtype), features)


def lists(matrix, fixed=True):
    """A matrix as an Arrow column."""
    values = pa.array(np.ascontiguousarray(matrix).reshape(-1))
    if fixed:
        return pa.FixedSizeListArray.from_arrays(values, matrix.shape[1])
    offsets = np.arange(len(matrix) + 1, dtype=np.int32) * matrix.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def table(pool, fixed=True, **more):
    columns = {
        "logits": lists(pool.logits.numpy(), fixed),
        "features": lists(pool.features.numpy(), fixed),
    }
    return pa.table(columns | {name: pa.array(values) for name, values in more.items()})


def write(folder, pool, sizes, group=None, fixed=True, **more):
    """The pool as files part-000.parquet, …, of `sizes` rows."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = table(pool, fixed, **more)
    start = 0
    for number, size in enumerate(sizes):
        path = folder / f"part-{number:03d}.parquet"
        pq.write_table(whole.slice(start, size), path, row_group_size=group or max(1, size))
        start += size
    assert start == len(pool)
    return str(folder)


def names_of(rows, sizes):
    """The identifiers of some rows of a pool in files of `sizes` rows, see `write`."""
    starts = np.cumsum([0, *sizes])
    parts = np.searchsorted(starts, rows, side="right") - 1
    return [
        f"part-{part:03d}.parquet:{row - starts[part]}"
        for row, part in zip(rows, parts, strict=True)
    ]


def labeled(folder, rows=9, seed=1, sizes=None):
    """A labelled set on disk, and as `select` takes it."""
    seen, labels = embedding(rows, seed), torch.arange(rows) % CLASSES
    write(folder, seen, sizes or [rows], label=labels.numpy())
    return ParquetSource.open(str(folder), LABELED), (seen, labels)


def png(pixels):
    """An image file's bytes."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def pictures(count, seed=0, side=32):
    return np.random.default_rng(seed).integers(0, 256, (count, side, side, 3), dtype=np.uint8)


def tar(path, samples):
    """A tar of (key, {extension: bytes}) samples."""
    with tarfile.open(path, "w") as file:
        for key, parts in samples:
            for extension, data in parts.items():
                info = tarfile.TarInfo(f"{key}.{extension}")
                info.size = len(data)
                file.addfile(info, io.BytesIO(data))


_SLOW = """
import os, time
import torch
from torch import nn

def net():
    torch.manual_seed(0)
    return nn.Linear(4, 3)

def slowly(text):
    if "ASKANCE_TEST_LOG" in os.environ:
        file = os.open(os.environ["ASKANCE_TEST_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, (text + "\\n").encode())
        os.close(file)
        time.sleep(0.01)
    return torch.tensor([float(text) * k % 7 for k in (1, 3, 5, 11)])
"""


def write_slow_pool(folder):
    """A pool of ten shards of 20 texts, and the module slow_pool, whose transform takes its time."""
    (folder / "slow_pool.py").write_text(_SLOW)
    (folder / "pool").mkdir()
    for part in range(10):
        rows = [str(value) for value in range(part * 20, part * 20 + 20)]
        pq.write_table(pa.table({"t": rows}), folder / "pool" / f"{part}.parquet")
