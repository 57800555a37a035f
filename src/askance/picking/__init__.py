"""From scores or distances to n rows."""

from askance.picking.topk import Picks, StreamingTopK, TopRows

__all__ = ["Picks", "StreamingTopK", "TopRows"]
