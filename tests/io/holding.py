"""Another process that holds a lock, with or without `fcntl`."""

import os
import subprocess
import sys

WITHOUT = "import sys; sys.modules['fcntl'] = None\n"
HOLD = """
import sys, time
from pathlib import Path
from askance._io.lock import Lock
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(300)
"""


def python(code, *arguments, fcntl=True, **options):
    """A process that runs the code; nothing that is imported there sees `fcntl` unless it may."""
    command = [sys.executable, "-c", (WITHOUT, "")[fcntl] + code, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **pipes | {"env": dict(os.environ)} | options)


def ended(process):
    """What a process said, once it has ended well."""
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return out


class Holder:
    """Holds a lock until it is killed or the context ends."""

    def __init__(self, path, fcntl=True):
        self.process = python(HOLD, path, fcntl=fcntl)
        line = self.process.stdout.readline()
        assert line == "held\n", self.process.communicate()
        self.pid = self.process.pid

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
