"""Cached features survive kills and full disks, are shared between processes, and can be pruned."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from askance import encoders
from askance.encoders import cache as caches
from askance.errors import StoreError
from tests.encoders.toys import letters, text_encoder

RUN = """
import sys, time
from askance import encoders
from tests.encoders.toys import letters, text_encoder

def slow(texts):
    time.sleep(0.02)
    return letters(texts)

slow.__module__, slow.__qualname__ = letters.__module__, letters.__qualname__
{limit}
texts = [f"text {{n}}" for n in range(int(sys.argv[2]))]
encoded = encoders.encode(text_encoder(slow), texts, cache=sys.argv[1], batch_size=4)
print(encoded.computed)
"""
TEXTS = [f"text {n}" for n in range(400)]


def started(folder, count=400, limit=""):
    return subprocess.Popen(
        [sys.executable, "-c", RUN.format(limit=limit), str(folder), str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_killed_run_keeps_what_was_committed(tmp_path):
    running = started(tmp_path)
    deadline = time.monotonic() + 60
    while not (kept := caches.cached(tmp_path)) or kept[0].items < 64:
        assert time.monotonic() < deadline
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    before = caches.cached(tmp_path)[0].items
    assert 64 <= before < 400
    encoded = encoders.encode(text_encoder(), TEXTS, cache=tmp_path)
    assert encoded.computed == 400 - before
    np.testing.assert_array_equal(encoded.features, letters(TEXTS))


def test_two_processes_share_one_file(tmp_path):
    both = [started(tmp_path), started(tmp_path)]
    counts = []
    for process in both:
        out, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
        counts.append(int(out))
    assert 400 <= sum(counts) <= 800
    assert caches.cached(tmp_path)[0].items == 400
    encoded = encoders.encode(text_encoder(), TEXTS, cache=tmp_path)
    assert encoded.computed == 0
    np.testing.assert_array_equal(encoded.features, letters(TEXTS))


def test_a_full_disk_is_said_and_loses_nothing(tmp_path):
    limit = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))"
    )
    full = started(tmp_path, 4000, limit)
    _, error = full.communicate(timeout=120)
    assert full.returncode != 0
    assert "askance.errors.StoreError" in error
    assert "full" in error
    kept = caches.cached(tmp_path)[0].items
    assert kept > 0
    texts = [f"text {n}" for n in range(4000)]
    assert encoders.encode(text_encoder(), texts, cache=tmp_path).computed == 4000 - kept


def test_what_the_cache_holds_is_listed_and_pruned(tmp_path):
    for version, count in (("1", 3), ("2", 5)):
        encoders.encode(text_encoder(version=version), TEXTS[:count], cache=tmp_path)
    listed = caches.cached(tmp_path)
    assert sorted(each.items for each in listed) == [3, 5]
    assert all(each.size > 0 and each.encoder == text_encoder().name for each in listed)
    digest = text_encoder(version="2").digest
    assert [each.items for each in caches.prune(digest, tmp_path)] == [5]
    assert [each.items for each in caches.cached(tmp_path)] == [3]
    assert len(caches.prune(folder=tmp_path)) == 1
    assert [*tmp_path.iterdir()] == []


def test_half_precision_is_kept_apart(tmp_path):
    for precision in ("float32", "bf16"):
        with encoders.FeatureCache(text_encoder(), tmp_path, precision=precision) as cache:
            assert len(cache) == 0
            cache.add({b"item": np.ones(4, dtype=np.float32)})


def test_another_file_in_its_place_is_refused(tmp_path):
    path = tmp_path / f"{text_encoder().digest}.sqlite"
    path.write_bytes(b"something else" * 100)
    with pytest.raises(StoreError, match="features are computed again"):
        encoders.encode(text_encoder(), ["a"], cache=tmp_path)
    assert path.read_bytes() == b"something else" * 100


def test_features_of_another_width_are_refused(tmp_path):
    with encoders.FeatureCache(text_encoder(), tmp_path) as cache:
        cache.add({b"item": np.ones(3, dtype=np.float32)})
        with pytest.raises(StoreError, match="features of 3 numbers where the encoder gives 4"):
            cache.get([b"item"])


def test_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path))
    encoders.encode(text_encoder(), ["a"], cache=True)
    assert [*(tmp_path / "features").glob("*.sqlite")]
    monkeypatch.delenv("ASKANCE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert encoders.cache_folder() == tmp_path / "home" / "askance" / "features"
