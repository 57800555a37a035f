"""Pools without end: sources that are read shard by shard, and the pass over them."""

from askance.pools.engine import Engine, Job, LocalEngine
from askance.pools.leaders import Leaders, Skipped, merge
from askance.pools.parquet import Columns, ParquetSource
from askance.pools.recipe import ModelRecipe, Recipe
from askance.pools.result import PoolSelection
from askance.pools.scorer import Reader, ShardScorer
from askance.pools.select import select_from
from askance.pools.source import PoolBlock, Shard, Source

__all__ = [
    "Columns",
    "Engine",
    "Job",
    "Leaders",
    "LocalEngine",
    "ModelRecipe",
    "ParquetSource",
    "PoolBlock",
    "PoolSelection",
    "Reader",
    "Recipe",
    "Shard",
    "ShardScorer",
    "Skipped",
    "Source",
    "merge",
    "select_from",
]
