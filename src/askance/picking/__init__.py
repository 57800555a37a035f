"""From scores or geometry to n rows."""

from askance.picking.dense import dense_kcenter, dense_kmeanspp
from askance.picking.kcenter import kcenter
from askance.picking.kmeanspp import kmeanspp, kmeanspp_replay
from askance.picking.points import (
    Points,
    Vectors,
    feature_points,
    gradient_points,
    sq_dists_before_picks,
)
from askance.picking.shard import ShardPicker, kcenter_shard, kmeanspp_shard
from askance.picking.sharded import LocalShards, sharded_kcenter, sharded_kmeanspp
from askance.picking.spread import angles_before_picks, farthest_by_angle
from askance.picking.topk import Picks, StreamingTopK, TopRows, gumbel_keys, top_k

__all__ = [
    "LocalShards",
    "Picks",
    "Points",
    "ShardPicker",
    "StreamingTopK",
    "TopRows",
    "Vectors",
    "angles_before_picks",
    "dense_kcenter",
    "dense_kmeanspp",
    "farthest_by_angle",
    "feature_points",
    "gradient_points",
    "gumbel_keys",
    "kcenter",
    "kcenter_shard",
    "kmeanspp",
    "kmeanspp_replay",
    "kmeanspp_shard",
    "sharded_kcenter",
    "sharded_kmeanspp",
    "sq_dists_before_picks",
    "top_k",
]
