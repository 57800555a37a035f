"""A person answers: a local page that asks what the model wants to know, and loses no answer.

`open_desk` opens a project, `server.serving` puts it on a socket, `load` reads a model it exported.
"""

from askance.label.bundle import Bundle, load
from askance.label.desk import Desk, open_desk
from askance.label.source import Options, Source

__all__ = ["Bundle", "Desk", "Options", "Source", "load", "open_desk"]
