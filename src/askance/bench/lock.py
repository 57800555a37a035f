"""One writer a store: a lock that ends with its process, however the process ends."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from askance.errors import StoreError

# A POSIX lock is the process's, not the file handle's: a killed process leaves none behind, and neither
# do the workers it forked. But it does not keep the same process from locking twice; this set does.
_held: set[Path] = set()


class Lock:
    """Held from its making until `release`; the file holds the holder's process id meanwhile.

    Args:
        path: the file.
        advice: what to do while another holds it.
    """

    def __init__(self, path: Path, advice: str = "wait for it to end or stop it") -> None:
        self._path = path.absolute().parent.resolve() / path.name
        self._pid = os.getpid()
        self._advice = advice
        if self._path in _held:
            raise self._taken(f"this process (pid {self._pid})")
        self._file = self._acquire()
        _held.add(self._path)

    def release(self) -> None:
        """Remove the file, then let go: nobody can lock a file that is about to vanish unnoticed."""
        if os.getpid() != self._pid or self._path not in _held:
            return
        _held.discard(self._path)
        with suppress(OSError):  # a file left behind holds nobody up
            self._path.unlink()
        os.close(self._file)

    def _acquire(self) -> int:
        while True:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A holder that has just left removed the file it had locked: this may be that one.
                if self._is_still_there(file):
                    os.truncate(file, 0)
                    os.write(file, str(self._pid).encode())
                    return file
            except (BlockingIOError, PermissionError):
                holder = os.pread(file, 20, 0).decode(errors="replace")
                os.close(file)
                who = f"another process (pid {holder})" if holder.isdigit() else "another process"
                raise self._taken(who) from None
            except BaseException:
                os.close(file)
                raise
            os.close(file)

    def _is_still_there(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self._path.stat())
        except FileNotFoundError:
            return False

    def _taken(self, holder: str) -> StoreError:
        return StoreError(
            f"the store in {self._path.parent} is being written by {holder}; {self._advice}, or write "
            f"to another folder"
        )
