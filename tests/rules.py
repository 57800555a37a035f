"""The rules that one model is enough for; bald and powerbald ask a committee."""

from askance import strategies

ONE_MODEL = [name for name in strategies.names() if "members" not in strategies.get(name).needs]
