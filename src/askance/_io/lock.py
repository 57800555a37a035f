"""One writer at a time: a lock that ends with its process, however the process ends.

Where the system can lock files, a killed process leaves no lock behind. Where it cannot, the file alone
is the lock: one that a killed process left is taken over once that process is known to be gone, and
until then the error names the file to delete.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from askance.errors import StoreError

# Seconds before a lock counts as held: a holder that is letting go has removed its file but not yet
# unlocked it, and a file that a killed process left is taken over at the second try.
PATIENCE, AGAIN = 0.2, 0.02


class Lock:
    """Held from its making until `release`; the file begins with the holder's process id meanwhile.

    Args:
        path: the file.
        advice: what to do while another holds it.
        what: what is locked; the store in the folder of `path` when None.
    """

    def __init__(
        self, path: Path, advice: str = "wait for it to end or stop it", what: str | None = None
    ) -> None:
        self._path, self._pid, self._advice = path.absolute(), os.getpid(), advice
        self._what = f"the store in {self._path.parent}" if what is None else what
        # Not of one thread: who closes a store may be another than who opened it.
        self._lock: BaseFileLock = FileLock(self._path, PATIENCE, thread_local=False)
        try:
            self._lock.acquire(poll_interval=AGAIN)
        except Timeout:
            raise self._taken() from None
        if not self._is_soft:  # whose file names its holder already
            with suppress(OSError):  # Windows lets nobody write to a locked file
                self._path.write_text(str(self._pid))

    def release(self) -> None:
        """Remove the file, then let go: nobody can lock a file that is about to vanish unnoticed."""
        if os.getpid() != self._pid or not self._lock.is_locked:
            return
        if not self._is_soft:
            with suppress(OSError):  # a file left behind holds nobody up
                self._path.unlink()
        self._lock.release()

    @property
    def _is_soft(self) -> bool:
        """Whether the file alone is the lock: the system, or this disk, has no other."""
        return isinstance(self._lock, SoftFileLock)

    def _taken(self) -> StoreError:
        message = (
            f"{self._what} is being written by {self._holder()}; {self._advice}, or write to another "
            f"folder"
        )
        if self._is_soft:
            message += f". Where no such process runs on any machine, delete {self._path}"
        return StoreError(message)

    def _holder(self) -> str:
        try:
            pid = self._path.read_bytes()[:1000].partition(b"\n")[0].decode()
        except (OSError, UnicodeDecodeError):  # just released, or a system that lets nobody read it
            return "another process"
        if pid == str(os.getpid()):
            return f"this process (pid {pid})"
        return f"another process (pid {pid})" if pid.isdigit() else "another process"
