"""Run items through an encoder: what is cached is looked up, the rest is encoded and kept.

Items are loaded, images decoded and batches prepared by threads beside the forward pass. After every
chunk its features are committed to the cache, so that a kill or a full disk loses one chunk at most.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from askance._io.processes import cores
from askance.embedding.device import usable_or_best
from askance.encoders.cache import FeatureCache
from askance.encoders.encoder import Encoder, Prepared
from askance.encoders.registry import get
from askance.errors import DataError, InputError, NonFiniteError, UnknownError
from askance.images import SUFFIXES

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
# Batches that are prepared ahead of the forward pass.
_AHEAD = 3
# A chunk is looked up, encoded and committed as one; texts of one chunk are sorted by length.
_CHUNK_BATCHES = 16
_PRECISIONS = {"float32": None, "bf16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True, eq=False)
class Encoded:
    """The features of some items.

    Args:
        features: (N, D) float32, one row for each item that could be read, in the items' order.
        rows: (N,) where each row's item stands among the items given.
        unreadable: what was wrong with the others, by their place.
        computed: how many items were encoded; the others were cached.
        cut: how many of the encoded texts were longer than the encoder reads.
    """

    features: NDArray[np.float32]
    rows: NDArray[np.int64]
    unreadable: dict[int, str] = field(default_factory=dict)
    computed: int = 0
    cut: int = 0

    def __len__(self) -> int:
        return len(self.rows)


def encode(
    encoder: str | Encoder,
    items: Iterable[Any],
    *,
    cache: FeatureCache | str | os.PathLike[str] | bool = False,
    batch_size: int | None = None,
    device: str | None = None,
    precision: Literal["float32", "bf16", "float16"] = "float32",
    on_error: Literal["raise", "skip"] = "raise",
    empty_texts: bool = False,
    only_cached: bool = False,
    progress: Progress | None = None,
) -> Encoded:
    """Items to features.

    Args:
        encoder: a name, see `get`, or an Encoder.
        items: texts; or images as paths, bytes of files, Pillow images or uint8 arrays.
        cache: where features are kept: True for the user's cache, a folder, or an open cache.
        batch_size: items of a forward pass; the encoder's own when None.
        device: where to compute; CUDA where there is one when None.
        precision: "bf16" and "float16" let the model compute in half precision where PyTorch's autocast
            holds that safe. Not by default: features then change by about half a percent, so runs on
            two kinds of machine would not agree. The cache keeps each precision apart.
        on_error: "raise" at an item that cannot be read, or "skip" and count it.
        empty_texts: encode a text without words like any other, rather than call it unreadable.
        only_cached: raise a DataError where an item's features are not in the cache yet.
        progress: called with (items done, items) as the work goes on.

    Example:
        >>> from askance import encoders
        >>> vowels = lambda texts: [[sum(map(t.count, "aeiou"))] for t in texts]
        >>> encoder = encoders.FunctionEncoder(vowels, "text", "1")
        >>> encoders.encode(encoder, ["banana", "apple"]).features.tolist()
        [[3.0], [2.0]]
    """
    if on_error not in ("raise", "skip"):
        raise UnknownError.of("on_error", on_error, ["raise", "skip"])
    if precision not in _PRECISIONS:
        raise UnknownError.of("precision", precision, _PRECISIONS)
    model = get(encoder)
    each = as_items(items, model.kind)
    _check_first(model, each)
    size = model.batch_size if batch_size is None else batch_size
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InputError(f"batch_size must be a whole number, at least 1, got {size!r}")
    place = usable_or_best(device)
    model.to(place)
    features = np.empty((len(each), model.dimension), dtype=np.float32)
    if progress is not None and each:
        progress(0, len(each))
    work = _Work(
        model, each, features, size, place, _PRECISIONS[precision], empty_texts, only_cached
    )
    with ExitStack() as stack:
        store = _opened(cache, model, precision, stack)
        work.threads = stack.enter_context(ThreadPoolExecutor(max(2, min(8, cores()))))
        chunk = size * _CHUNK_BATCHES
        for start in range(0, len(each), chunk):
            work.run(range(start, min(start + chunk, len(each))), store, progress)
            if work.unreadable and on_error == "raise":
                row, reason = next(iter(work.unreadable.items()))
                raise DataError(f"item {row}: {reason}; leave it out, or skip what cannot be read")
    if work.cut:
        log.info("%s texts are longer than %s reads; their beginnings count", work.cut, model.name)
    rows = np.array([row for row in range(len(each)) if row not in work.unreadable], dtype=np.int64)
    return Encoded(features[rows], rows, work.unreadable, work.computed, work.cut)


def as_items(items: Iterable[Any], kind: str, what: str = "items") -> list[Any]:
    """Items as a list. What a list would misread is refused: one text, one path, a table."""
    if isinstance(items, (str, bytes, Path)) or not hasattr(items, "__iter__"):
        raise InputError(f"the {what} must be a list of {kind}s, got {type(items).__name__}")
    if hasattr(items, "columns"):
        raise InputError(
            f"the {what} must be a list of {kind}s, got a {type(items).__name__}; pass one column of "
            f"it, as in table['text']"
        )
    return list(items)


def _check_first(encoder: Encoder, items: Sequence[Any]) -> None:
    """Refuse files of images for an encoder of texts, and texts for one of images."""
    first = items[0] if items else None
    if not isinstance(first, (str, Path)):
        return
    is_image = len(str(first)) < 4096 and Path(first).suffix.lower() in SUFFIXES
    if encoder.kind == "text" and is_image and Path(first).is_file():
        raise InputError(
            f"encoder {encoder.name!r} takes texts, and the first item, {str(first)!r}, is the path of "
            f"an image; use an encoder of images, such as 'efficientnet-lite0'"
        )
    if encoder.kind == "image" and not is_image and not _is_file(first):
        raise InputError(
            f"encoder {encoder.name!r} takes images, and the first item, {str(first)[:60]!r}, is a "
            f"string that names no file; use an encoder of texts, such as 'minilm'"
        )


def _is_file(path: str | Path) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # a text that is too long for a path, or has a NUL
        return False


@dataclass(eq=False)
class _Work:
    """The items of one call, and what came of them so far."""

    encoder: Encoder
    items: Sequence[Any]
    features: NDArray[np.float32]
    batch_size: int
    device: torch.device
    half: torch.dtype | None
    empty_texts: bool
    only_cached: bool = False
    unreadable: dict[int, str] = field(default_factory=dict)
    computed: int = 0
    cut: int = 0
    threads: ThreadPoolExecutor = field(init=False)

    def run(
        self, rows: range, cache: FeatureCache | None, progress: Progress | None = None
    ) -> None:
        """Look up or encode a chunk's rows, and commit what is new; progress after every batch."""
        contents = dict(zip(rows, self.threads.map(self._content, rows), strict=True))
        readable = [row for row in rows if not isinstance(contents[row], DataError)]
        digests = {row: item_digest(contents[row]) for row in readable}
        vectors = {} if cache is None else cache.get(list(set(digests.values())))
        for row in readable:
            if digests[row] in vectors:
                self.features[row] = vectors[digests[row]]
        # Copies are encoded once.
        first = {digests[row]: row for row in reversed(readable) if digests[row] not in vectors}
        missing = sorted(first.values())
        if missing and self.only_cached:
            raise DataError(f"the features of {len(missing)} items are not in the cache yet")
        if self.encoder.kind == "text":  # texts of one length need no padding
            missing.sort(key=lambda row: len(contents[row]))
        left = len(missing)
        for some, prepared in self._prepared(missing, contents):
            self.cut += prepared.cut
            self.features[some] = self._forward(prepared.inputs)
            self.computed += len(some)
            left -= len(some)
            if progress is not None and left:
                progress(rows.stop - left, len(self.items))
        new = {digests[row]: self.features[row] for row in missing if row not in self.unreadable}
        if cache is not None and new:
            cache.add(new)
        for row in readable:
            source = first.get(digests[row], row)
            if source in self.unreadable:
                self.unreadable[row] = self.unreadable[source]
            elif source != row:
                self.features[row] = self.features[source]
        failed = {
            row: str(error) for row, error in contents.items() if isinstance(error, DataError)
        }
        self.unreadable = dict(sorted({**self.unreadable, **failed}.items()))
        if progress is not None:
            progress(rows.stop, len(self.items))

    def _content(self, row: int) -> Any:
        """What an item is known by: a text, a file's bytes, an image; or why there is none."""
        item = self.items[row]
        try:
            if self.encoder.kind == "text":
                return _text(item, self.empty_texts)
            return _file(item)
        except DataError as error:
            return error

    def _prepared(
        self, rows: list[int], contents: dict[int, Any]
    ) -> Iterator[tuple[list[int], Prepared]]:
        """Batches in order, each made by a thread while those before it are in the model."""
        waiting: deque[Future[tuple[list[int], Prepared | None]]] = deque()
        starts = iter(range(0, len(rows), self.batch_size))
        make = partial(self._batch, contents)

        def submit() -> None:
            start = next(starts, None)
            if start is not None:
                waiting.append(self.threads.submit(make, rows[start : start + self.batch_size]))

        for _ in range(_AHEAD):
            submit()
        while waiting:
            some, prepared = waiting.popleft().result()
            submit()
            if prepared is not None:
                yield some, prepared

    def _batch(
        self, contents: dict[int, Any], rows: list[int]
    ) -> tuple[list[int], Prepared | None]:
        loaded = {}
        for row in rows:
            try:
                loaded[row] = self.encoder.load(contents[row])
            except DataError as error:
                item = self.items[row]
                name = f"{item}: " if isinstance(item, (str, Path)) else ""
                self.unreadable[row] = name + str(error)
        if not loaded:
            return [], None
        return list(loaded), self.encoder.prepare(list(loaded.values()))

    def _forward(self, inputs: Any) -> NDArray[np.float32]:
        half = nullcontext() if self.half is None else torch.autocast(self.device.type, self.half)
        with torch.inference_mode(), half:
            vectors = self.encoder.features(_moved(inputs, self.device)).float()
        if not torch.isfinite(vectors.sum()):
            raise NonFiniteError(
                f"{self.encoder.name} gave features that are NaN or infinite; use precision 'float32', "
                f"or another encoder"
            )
        return vectors.cpu().numpy()


def item_digest(content: Any) -> bytes:
    """16 bytes that name an item by its content: a text, a file's bytes, or an image's pixels."""
    digest = blake2b(digest_size=16)
    if isinstance(content, str):
        digest.update(b"text\x00" + content.encode("utf-8", "surrogatepass"))
    elif isinstance(content, bytes):
        digest.update(b"file\x00" + content)
    else:
        pixels = np.ascontiguousarray(content)
        digest.update(f"pixels\x00{pixels.shape}{pixels.dtype}\x00".encode())
        digest.update(pixels.data)
    return digest.digest()


def _text(item: Any, empty: bool) -> str:
    if not isinstance(item, str):
        raise InputError(f"a text must be a string, got {type(item).__name__}")
    if not empty and not item.strip():
        raise DataError("an empty text")
    return item


def _file(item: Any) -> Any:
    """A path's bytes; whatever else an image is, as it is."""
    if not isinstance(item, (str, Path)):
        return item
    try:
        return Path(item).read_bytes()
    except OSError as error:
        raise DataError(f"{item}: cannot be read ({error.strerror})") from error


def _moved(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, torch.Tensor):
        return inputs.to(device, non_blocking=True)
    if isinstance(inputs, dict):
        return {name: _moved(value, device) for name, value in inputs.items()}
    return inputs


def _opened(
    cache: FeatureCache | str | os.PathLike[str] | bool,
    encoder: Encoder,
    precision: str,
    stack: ExitStack,
) -> FeatureCache | None:
    if isinstance(cache, FeatureCache):
        return cache
    if cache is False:
        return None
    folder = None if cache is True else cache
    return stack.enter_context(FeatureCache(encoder, folder, precision=precision))
