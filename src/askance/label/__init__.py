"""A person answers: a local page that asks what the model wants to know, and loses no answer.

`open_session` opens a project, `server.serving` puts it on a socket, `load` reads a model it exported.
"""

from askance.label.bundle import Bundle, load
from askance.label.session import LabelingSession, open_session
from askance.label.source import ItemSource, LabelingOptions

__all__ = ["Bundle", "ItemSource", "LabelingOptions", "LabelingSession", "load", "open_session"]
