"""Pools without end: sources that are read shard by shard, and the pass over them."""

from askance.pools.engine import Engine, LocalEngine, ShardTask
from askance.pools.images import ImageSource
from askance.pools.iterable import IterableSource
from askance.pools.memmap import MemmapSource
from askance.pools.model import ModelRecipe, ModelSource
from askance.pools.opening import Naming, open_source
from askance.pools.parquet import Columns, ParquetSource
from askance.pools.reader import Reader, ShardJob, ShardResult
from askance.pools.scan import ScoreRows
from askance.pools.select import select_from
from askance.pools.source import Shard, Source
from askance.pools.tar import TarSource

__all__ = [
    "Columns",
    "Engine",
    "ImageSource",
    "IterableSource",
    "LocalEngine",
    "MemmapSource",
    "ModelRecipe",
    "ModelSource",
    "Naming",
    "ParquetSource",
    "Reader",
    "ScoreRows",
    "Shard",
    "ShardJob",
    "ShardResult",
    "ShardTask",
    "Source",
    "TarSource",
    "open_source",
    "select_from",
]
