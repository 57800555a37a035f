"""Pools without end: sources that are read shard by shard, and the pass over them."""

from askance.pools.engine import Engine, Job, LocalEngine
from askance.pools.images import ImageSource
from askance.pools.iterable import IterableSource
from askance.pools.leaders import Leaders, Skipped, merge
from askance.pools.memmap import MemmapSource
from askance.pools.opening import Naming, open_source
from askance.pools.parquet import Columns, ParquetSource
from askance.pools.recipe import ModelRecipe, Recipe
from askance.pools.result import PoolSelection
from askance.pools.scorer import Reader, ShardScorer
from askance.pools.select import select_from
from askance.pools.source import PoolBlock, Shard, Source
from askance.pools.tar import TarSource

__all__ = [
    "Columns",
    "Engine",
    "ImageSource",
    "IterableSource",
    "Job",
    "Leaders",
    "LocalEngine",
    "MemmapSource",
    "ModelRecipe",
    "Naming",
    "ParquetSource",
    "PoolBlock",
    "PoolSelection",
    "Reader",
    "Recipe",
    "Shard",
    "ShardScorer",
    "Skipped",
    "Source",
    "TarSource",
    "merge",
    "open_source",
    "select_from",
]
