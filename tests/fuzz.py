"""Bytes changed at random, and a watch over what reading them does."""

# ruff: noqa: E501

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 10  # seconds that one input may take

_TOKENS = (
    b"\x00", b"\xff", b"\x00" * 8, b"\xff" * 8, b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00",
    b"-1", b"1e999", b"NaN", b"../../", b"/etc/passwd", b'"', b"\n", b"\r\n", b",", b"[" * 500, b"{" * 500,
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", "\u202e\u2028".encode(), b"99999999999999999999",
    b"__reduce__", b"'; --",
)  # fmt: skip


def changed(rng, content, others=()):
    """The bytes with a few changes: flips, cuts, repeats, strange tokens, pieces of other files."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 4, 16])):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(7)
        if kind == 0 and data:
            data[at % len(data)] = rng.randrange(256)
        elif kind == 1 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            del data[at : at + rng.randrange(1, 64)]
        elif kind == 4:
            data[at:at] = rng.choice(_TOKENS)
        elif kind == 5:
            data[at : at + 8] = rng.choice(_TOKENS)
        else:
            other = rng.choice([content, *others])
            start = rng.randrange(len(other) + 1)
            data[at:at] = other[start : start + rng.randrange(1, 256)]
    return bytes(data)


class DisallowedError(BaseException):
    """Something was run or written that must not be; no `except Exception` hides it."""


_allowed = threading.local()


def _audit(event, arguments):
    folder = getattr(_allowed, "folder", None)
    if folder is None:
        return
    if event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "pty.spawn"):
        raise DisallowedError(f"{event} {arguments}")
    if event in ("socket.connect", "ftplib.connect", "urllib.Request", "pickle.find_class"):
        raise DisallowedError(f"{event} {arguments}")
    if event == "open":
        path, mode, flags = arguments
        writes = flags is not None and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes and isinstance(path, str) and not _is_inside(path, folder):
            raise DisallowedError(f"opened {path} with mode {mode}")
    elif event in ("os.mkdir", "os.remove", "os.rename", "os.symlink", "os.link"):
        if any(
            isinstance(each, int) and each >= 0 for each in arguments[1:] if event == "os.remove"
        ):
            return  # within a folder that is open
        places = [each for each in arguments[:2] if isinstance(each, (str, bytes, Path))]
        if any(not _is_inside(os.fsdecode(each), folder) for each in places):
            raise DisallowedError(f"{event} {arguments}")


def _is_inside(path, folder):
    real = os.path.realpath(path)
    return real == os.devnull or real.startswith((f"{folder}{os.sep}", "/proc/self/"))


_hooked = []


@contextmanager
def watched(folder, seconds=PATIENCE):
    """Raise where this thread runs another program, connects, or writes outside; or takes too long."""
    if not _hooked:
        sys.addaudithook(_audit)
        _hooked.append(True)

    def late(*_):
        raise DisallowedError(f"not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    _allowed.folder = os.path.realpath(folder)
    try:
        yield
    finally:
        _allowed.folder = None
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_watch_sees(tmp_path):
    """It is no check if it cannot fail; collected with the fuzzers that import it."""
    import pytest

    for act in (
        lambda: subprocess.run(["true"], check=True),
        lambda: (tmp_path / "outside").write_text("x"),
        lambda: (tmp_path / "outside").mkdir(),
        lambda: __import__("time").sleep(5),
    ):
        (tmp_path / "inside").mkdir(exist_ok=True)
        with pytest.raises(DisallowedError), watched(tmp_path / "inside", 0.2):
            act()
    with watched(tmp_path / "inside"):
        (tmp_path / "inside" / "file").write_text("x")
