"""Rounds of training and asking: `askance.loop`, and several runs in step."""

from askance.loop.first import first_batch
from askance.loop.resuming import resume
from askance.loop.run import Run
from askance.loop.start import loop
from askance.loop.together import ask_together, lockstep

__all__ = ["Run", "ask_together", "first_batch", "lockstep", "loop", "resume"]
