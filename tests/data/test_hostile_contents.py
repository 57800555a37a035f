"""Archives that are whole, with wrong shapes and labels inside."""

from __future__ import annotations

import gzip
import tarfile

import numpy as np
import pytest
import scipy.io

from tests.data import builders
from tests.data.hostile import changed_zip, refused, rewritten


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content[:-1], "is not whole records of 3,073"),
        (lambda content: b"\x0a" + content[1:], "must be of 10 classes"),
        (lambda content: None, "data_batch_3.bin missing"),
    ],
)
def test_cifar10(change, message, official, tmp_path):
    folder, files, _ = official("cifar10")
    rewritten(
        files / "cifar-10-binary.tar.gz",
        lambda name, content: change(content) if "batch_3" in name else content,
    )
    refused("cifar10", folder, message, tmp_path)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("train_X", lambda content: content[:-1], "an image is 27,648 bytes"),
        ("train_y", lambda content: content[:-1], "bytes of images for 29 labels"),
        ("train_y", lambda content: b"\x00" + content[1:], "must be of 10 classes.*-1 to 9"),
        ("test_y", lambda content: b"\x0b" + content[1:], "must be of 10 classes.*0 to 10"),
        ("test_X", lambda content: None, "test_X.bin missing"),
    ],
)
def test_stl10(file, change, message, official, tmp_path):
    folder, files, _ = official("stl10")
    rewritten(
        files / "stl10_binary.tar.gz",
        lambda name, content: change(content) if file in name else content,
    )
    refused("stl10", folder, message, tmp_path)


IMAGES, LABELS = np.zeros((32, 32, 3, 5), np.uint8), np.ones((5, 1), np.uint8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"X": IMAGES}, "expected variables X and y, found"),
        ({"X": IMAGES[:31], "y": LABELS}, r"X must be \(32, 32, 3, N\)"),
        ({"X": IMAGES[..., 0], "y": LABELS}, r"X must be \(32, 32, 3, N\)"),
        ({"X": IMAGES, "y": LABELS[:4]}, "labels for 5 images"),
        ({"X": IMAGES, "y": LABELS * 0}, "labels must be 1 to 10, found 0"),
        ({"X": IMAGES, "y": LABELS * 11}, "labels must be 1 to 10"),
        ({"X": IMAGES.astype(float), "y": LABELS}, "X must be bytes"),
    ],
)
def test_svhn(content, message, official, tmp_path):
    folder, files, _ = official("svhn")
    scipy.io.savemat(files / "train_32x32.mat", content)
    refused("svhn", folder, message, tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "train-images-idx3",
            builders.idx_bytes(np.zeros((60, 27, 28), np.uint8)),
            "must be 28×28",
        ),
        (
            "train-images-idx3",
            builders.idx_bytes(np.zeros((60, 28, 28), np.uint8))[:-1],
            "bytes of data",
        ),
        ("train-images-idx3", b"\x00\x00\x0d\x03" + bytes(12), "not an idx file of bytes in 3"),
        ("t10k-labels-idx1", builders.idx_bytes(np.zeros(59, np.uint8)), "60 items with labels"),
        (
            "t10k-labels-idx1",
            builders.idx_bytes(np.full(60, 10, np.uint8)),
            "must be of 10 classes",
        ),
        ("t10k-labels-idx1", b"\x00\x00\x08\x01\x00", "not an idx file"),
    ],
)
def test_idx(file, content, message, official, tmp_path):
    folder, files, _ = official("mnist")
    (files / f"{file}-ubyte.gz").write_bytes(gzip.compress(content))
    refused("mnist", folder, message, tmp_path)


@pytest.mark.parametrize(
    ("name", "file", "wanted", "change", "message"),
    [
        (
            "gtsrb",
            "GTSRB_Final_Training_Images.zip",
            ".ppm",
            lambda c: None,
            "classes without an image",
        ),
        ("gtsrb", "GTSRB_Final_Training_Images.zip", ".csv", lambda c: c[:60], "without a class"),
        ("gtsrb", "GTSRB_Final_Test_Images.zip", ".ppm", lambda c: c[:99], "not a readable image"),
        (
            "gtsrb",
            "GTSRB_Final_Test_GT.zip",
            ".csv",
            lambda c: c.replace(b";42\n", b";43\n"),
            "must be of 43 classes",
        ),
        (
            "gtsrb",
            "GTSRB_Final_Test_GT.zip",
            ".csv",
            lambda c: c.replace(b";42\n", b";stop\n"),
            "has no file name and class number",
        ),
        ("isolet", "isolet.zip", "isolet5", lambda c: c.replace(b"26.", b"27."), "must be of 26"),
        ("isolet", "isolet.zip", "isolet5", lambda c: c.replace(b"26.", b"2.5"), "must be whole"),
        (
            "isolet",
            "isolet.zip",
            "isolet5",
            lambda c: c[2:].partition(b",")[2],
            "not a table of numbers",
        ),
        ("isolet", "isolet.zip", "isolet5", lambda c: None, "isolet5.data missing"),
        ("german", "statlog+german+credit+data.zip", "numeric", lambda c: b"1 2 3", "lines of 25"),
        ("german", "statlog+german+credit+data.zip", "numeric", lambda c: b"A11 6", "not a table"),
        ("gisette", "gisette.zip", "train.labels", lambda c: c[3:], "20 items with labels"),
        (
            "gisette",
            "gisette.zip",
            "train.labels",
            lambda c: c.replace(b"-1", b"0"),
            "must be −1 or 1",
        ),
        (
            "gisette",
            "gisette.zip",
            "valid.data",
            lambda c: c.replace(b" ", b" nan ", 1),
            "not a table",
        ),
    ],
)
def test_zips_of_tables_and_images(name, file, wanted, change, message, official, tmp_path):
    folder, files, _ = official(name)
    changed_zip(files / file, wanted, change)
    refused(name, folder, message, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"@data", b"", "expected an ARFF file of 11 attributes"),
        (b"@attribute a3 numeric\n", b"", "expected an ARFF file of 11 attributes, found 10"),
        (b"@data\n", b"@data\n1,2,3\n", "not a table of numbers"),
        (b"@data\n", b"@data\n1,1,1,1,1,1,1,1,1,1,10\n", "must be of 10 classes"),
        (b"@data\n", b"@data\n1,1,1,1,1,1,1,1,1,nan,1\n", "NaN or infinite"),
        (b"@data\n", b"@data\n1,0,2,0,3,0,1,0.08,1,0\n", "not a table of numbers"),
        (b"@data\n", b"@data\n1,0,2,0,3,0,1,0.12,1,0,3\n", "row 0 holds 0.12 in column C4"),
        (b"2,0,2,0.75,2,0.833333,2,0.916667,2,1,9\n", b"", "expected 200 hands, of the classes"),
    ],
)
def test_pokerhand(old, new, message, official, tmp_path):
    folder, files, _ = official("pokerhand")
    path = files / "pokerhand-normalized.arff"
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    refused("pokerhand", folder, message, tmp_path)


@pytest.mark.parametrize(
    ("name", "file", "member", "message"),
    [
        ("cinic10", "CINIC-10.tar.gz", "train/zebra/a.png", "is not <split>/<class>/<image>.png"),
        ("cinic10", "CINIC-10.tar.gz", "extra/cat/a.png", "is not <split>/<class>/<image>.png"),
        ("cinic10", "CINIC-10.tar.gz", "train/cat/a.png", "not a readable image"),
        ("20newsgroups", "20news-bydate.tar.gz", "20news-bydate-train/x.y/1", "is not a message"),
        ("20newsgroups", "20news-bydate.tar.gz", "other/sci.med/1", "is not a message"),
        ("20newsgroups", "20news-bydate.tar.gz", "1", "is not a message"),
    ],
)
def test_tars_of_files_by_class(name, file, member, message, official, tmp_path):
    folder, files, _ = official(name)
    path = files / file
    with tarfile.open(path) as archive:
        members = {m.name: archive.extractfile(m).read() for m in archive}
    builders.tar(path, {**members, member: b"evil"})
    refused(name, folder, message, tmp_path)
