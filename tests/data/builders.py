"""Small archives in the official formats, made from nothing."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import scipy.io
from PIL import Image

from askance.data import catalog

TEN = catalog.entry("cifar10").classes
GROUPS = catalog.entry("20newsgroups").classes
RNG = np.random.default_rng(0)


def tar(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def gzipped(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data))
    return path


def labels(count: int, classes: int) -> np.ndarray:
    return np.arange(count) % classes


def pictures(count: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, 256, (count, *shape), dtype=np.uint8)


def encoded(image: np.ndarray, form: str) -> bytes:
    stream = io.BytesIO()
    options = {"lossless": True} if form == "WEBP" else {}
    Image.fromarray(image).save(stream, form, **options)
    return stream.getvalue()


def numbers(rows: np.ndarray, join: str) -> bytes:
    return "\n".join(join.join(f"{value:g}" for value in row) for row in rows).encode() + b"\n"


# Each builder writes the official files of one dataset under `folder` and returns what a parser must
# find: (train items, train labels, test items or None, test labels or None).


def cifar10(folder: Path, count: int = 20):
    images, targets = pictures(6 * count, 32, 32, 3), labels(6 * count, 10)
    records = np.concatenate(
        [targets[:, None].astype(np.uint8), images.transpose(0, 3, 1, 2).reshape(6 * count, -1)],
        axis=1,
    )
    names = [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]
    members = {
        f"cifar-10-batches-bin/{name}": records[count * i : count * (i + 1)].tobytes()
        for i, name in enumerate(names)
    }
    tar(
        folder / "cifar-10-binary.tar.gz", {**members, "cifar-10-batches-bin/readme.html": b"hello"}
    )
    return images[: 5 * count], targets[: 5 * count], images[5 * count :], targets[5 * count :]


def svhn(folder: Path, count: int = 60):
    out = []
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "test"):
        images, targets = pictures(count, 32, 32, 3), labels(count, 10)
        ten = np.where(targets == 0, 10, targets).astype(np.uint8)[:, None]
        content = {"X": images.transpose(1, 2, 3, 0), "y": ten}
        scipy.io.savemat(folder / f"{split}_32x32.mat", content, do_compression=True)
        out += [images, targets]
    return tuple(out)


def stl10(folder: Path, count: int = 30):
    members, out = {}, []
    for split in ("train", "test"):
        # Flat colours, so that any resizing gives them back.
        colours, targets = pictures(count, 3), labels(count, 10)
        images = np.broadcast_to(colours[:, :, None, None], (count, 3, 96, 96))
        members[f"stl10_binary/{split}_X.bin"] = images.tobytes()
        members[f"stl10_binary/{split}_y.bin"] = (targets + 1).astype(np.uint8).tobytes()
        out += [np.broadcast_to(colours[:, None, None, :], (count, 32, 32, 3)), targets]
    tar(folder / "stl10_binary.tar.gz", {**members, "stl10_binary/unlabeled_X.bin": bytes(100)})
    return tuple(out)


def gtsrb(folder: Path, count: int = 129):
    header = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId"
    colours, targets = pictures(2 * count, 3), labels(2 * count, 43)
    images = np.broadcast_to(colours[:, None, None, :], (2 * count, 40, 40, 3))
    train: dict[str, bytes] = {}
    tables: dict[int, list[str]] = {}
    for row in range(count):
        label = int(targets[row])
        file = f"{row:05d}_00000.ppm"
        train[f"GTSRB/Final_Training/Images/{label:05d}/{file}"] = encoded(images[row], "PPM")
        tables.setdefault(label, [header]).append(f"{file};40;40;5;5;35;35;{label}")
    for label, lines in tables.items():
        name = f"GTSRB/Final_Training/Images/{label:05d}/GT-{label:05d}.csv"
        train[name] = "\r\n".join(lines).encode()
    zipped(folder / "GTSRB_Final_Training_Images.zip", train)
    files = [f"{row:05d}.ppm" for row in range(count)]
    test = {
        f"GTSRB/Final_Test/Images/{file}": encoded(images[count + row], "PPM")
        for row, file in enumerate(files)
    }
    boxes = "\n".join([header.removesuffix(";ClassId"), *(f"{f};40;40;5;5;35;35" for f in files)])
    test["GTSRB/Final_Test/Images/GT-final_test.test.csv"] = boxes.encode()
    zipped(folder / "GTSRB_Final_Test_Images.zip", test)
    lines = [f"{file};40;40;5;5;35;35;{targets[count + row]}" for row, file in enumerate(files)]
    table = "\n".join([header, *lines]).encode()
    zipped(folder / "GTSRB_Final_Test_GT.zip", {"GT-final_test.csv": table})
    small = np.broadcast_to(colours[:, None, None, :], (2 * count, 32, 32, 3))
    order = np.lexsort((np.arange(count), targets[:count]))
    return small[:count][order], targets[:count][order], small[count:], targets[count:]


def cinic10(folder: Path, count: int = 30):
    members, order = {}, []
    for split in ("train", "valid", "test"):
        images, targets = pictures(count, 32, 32, 3), labels(count, 10)
        for row in range(count):
            name = f"{split}/{TEN[targets[row]]}/n{row:04d}.png"
            members[f"./{name}"] = encoded(images[row], "PNG")
            order.append((split == "test", name, images[row], targets[row]))
    tar(folder / "CINIC-10.tar.gz", {**members, "./README.md": b"hello"})
    order.sort(key=lambda item: item[:2])
    images, targets = np.stack([o[2] for o in order]), np.asarray([o[3] for o in order])
    return images[: 2 * count], targets[: 2 * count], images[2 * count :], targets[2 * count :]


def idx_bytes(array: np.ndarray) -> bytes:
    return (
        bytes((0, 0, 8, array.ndim))
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


def idx(folder: Path, count: int = 60):
    out = []
    for split in ("train", "t10k"):
        images, targets = pictures(count, 28, 28), labels(count, 10)
        gzipped(folder / f"{split}-images-idx3-ubyte.gz", idx_bytes(images))
        gzipped(folder / f"{split}-labels-idx1-ubyte.gz", idx_bytes(targets.astype(np.uint8)))
        out += [images, targets]
    return tuple(out)


def isolet(folder: Path, count: int = 130, pack=lambda data: data, suffix: str = ""):
    features = np.round(RNG.uniform(-1, 1, (count, 617)), 4)
    targets = labels(count, 26)
    rows = np.concatenate([features, targets[:, None] + 1.0], axis=1)
    lines = [", ".join([*(f"{v:.4f}" for v in row[:-1]), f"{row[-1]:.0f}."]) for row in rows]
    cut = 4 * count // 5
    members = {
        f"isolet1+2+3+4.data{suffix}": pack("\n".join(lines[:cut]).encode() + b"\n"),
        f"isolet5.data{suffix}": pack("\n".join(lines[cut:]).encode() + b"\n"),
        "isolet.names": b"hello",
    }
    zipped(folder / "isolet.zip", members)
    return features.astype(np.float32), targets, None, None


def poker_hands(count: int = 200):
    """Different hands (N, 10), each sorted by rank, then suit, and their classes; the same every time.

    Every class is there, and so are both ends of every column.
    """
    named = [
        [(1, 1), (2, 1), (3, 1), (4, 1), (1, 2)],  # the least of all hands
        [(4, 12), (1, 13), (2, 13), (3, 13), (4, 13)],  # the greatest
        [(2, 1), (2, 10), (2, 11), (2, 12), (2, 13)],
        [(3, 5), (3, 6), (3, 7), (3, 8), (3, 9)],
        [(1, 4), (2, 4), (1, 9), (2, 9), (3, 9)],
        [(1, 2), (1, 4), (1, 9), (1, 11), (1, 13)],
        [(1, 1), (2, 2), (1, 3), (1, 4), (1, 5)],
        [(4, 1), (2, 10), (1, 11), (1, 12), (1, 13)],
        [(1, 7), (2, 7), (4, 7), (1, 11), (1, 13)],
        [(1, 7), (2, 7), (1, 11), (4, 11), (1, 13)],
        [(1, 7), (2, 7), (1, 10), (4, 11), (1, 13)],
        [(1, 3), (2, 7), (1, 10), (4, 11), (1, 13)],
    ]
    rng = np.random.default_rng(7)
    hands = {tuple(hand) for hand in named}
    while len(hands) < count:
        cards = rng.choice(52, 5, replace=False)
        hands.add(tuple((int(c % 4 + 1), int(c // 4 + 1)) for c in np.sort(cards)))
    rows = [*map(tuple, named), *sorted(hands - set(map(tuple, named)))]
    return np.asarray(rows[:count]).reshape(count, 10), np.asarray([poker(h) for h in rows[:count]])


def poker(hand) -> int:
    """The class of a hand, by the rules as they are told."""
    suits, ranks = {suit for suit, _ in hand}, sorted(rank for _, rank in hand)
    times = sorted((ranks.count(rank) for rank in set(ranks)), reverse=True)
    royal = ranks == [1, 10, 11, 12, 13]
    straight = royal or ranks == list(range(ranks[0], ranks[0] + 5))
    if len(suits) == 1:
        return 9 if royal else 8 if straight else 5
    if straight:
        return 4
    return {(4, 1): 7, (3, 2): 6, (3, 1, 1): 3, (2, 2, 1): 2}.get(
        tuple(times), 1 if times[0] == 2 else 0
    )


def pokerhand(folder: Path, count: int = 200):
    """Suits as they are, ranks from 0 to 1 in each column, with six digits."""
    hands, targets = poker_hands(count)
    ranks = hands[:, 1::2]
    low, high = ranks.min(axis=0), ranks.max(axis=0)
    scaled = (ranks - low) / (high - low)
    lines = [
        ",".join(f"{suit},{rank:.6g}" for suit, rank in zip(suits, row, strict=True)) + f",{label}"
        for suits, row, label in zip(hands[:, 0::2], scaled, targets, strict=True)
    ]
    header = "@relation poker\n" + "".join(f"@attribute a{i} numeric\n" for i in range(10))
    header += "@attribute class {0,1,2,3,4,5,6,7,8,9}\n\n@data\n"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pokerhand-normalized.arff").write_text(header + "\n".join(lines) + "\n")
    return hands.astype(np.float32), targets, None, None


def german(folder: Path, count: int = 100):
    rows, targets = RNG.integers(0, 90, (count, 24)), labels(count, 2)
    cells = np.concatenate([rows, targets[:, None] + 1], axis=1)
    lines = [f"   {'   '.join(map(str, row))} " for row in cells]
    members = {"german.data-numeric": "\n".join(lines).encode(), "german.data": b"A11 6"}
    zipped(folder / "statlog+german+credit+data.zip", members)
    return rows.astype(np.float32), targets, None, None


def gisette(folder: Path, count: int = 20):
    members, out = {}, []
    for split, base in (("train", "GISETTE/"), ("valid", "GISETTE/")):
        rows, targets = RNG.integers(0, 999, (count, 5_000)), labels(count, 2)
        members[f"{base}gisette_{split}.data"] = numbers(rows, " ")
        place = base if split == "train" else ""
        members[f"{place}gisette_{split}.labels"] = numbers((2 * targets - 1)[:, None], " ")
        out += [rows.astype(np.float32), targets]
    zipped(folder / "gisette.zip", members)
    return tuple(out)


def newsgroups(folder: Path, count: int = 60):
    members, out = {}, []
    for split in ("train", "test"):
        targets = np.sort(labels(count, 20))
        texts = [f"planet{label} orbit number{row % 7}" for row, label in enumerate(targets)]
        for row, (text, label) in enumerate(zip(texts, targets, strict=True)):
            message = (
                f"From: someone\nSubject: hidden\n\n{text}\n> quoted hidden\n\n-- \nsigned hidden\n"
            )
            members[f"20news-bydate-{split}/{GROUPS[label]}/{10_000 + row}"] = message.encode()
        out += [[f"{text}\n" for text in texts], targets]
    tar(folder / "20news-bydate.tar.gz", members)
    return tuple(out)


BUILDERS = {
    "cifar10": cifar10,
    "svhn": svhn,
    "stl10": stl10,
    "gtsrb": gtsrb,
    "cinic10": cinic10,
    "mnist": idx,
    "fashion-mnist": idx,
    "isolet": isolet,
    "pokerhand": pokerhand,
    "german": german,
    "gisette": gisette,
    "20newsgroups": newsgroups,
}
