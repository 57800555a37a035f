"""Files and options that are odd or damaged: an error in words and its exit code, no traceback."""

import os
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from askance.cli import main
from askance.cli.picked import identifiers_in

NET = "import torch\ndef net():\n    return torch.nn.Linear(4, 3)\n"
X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
DEEP = 100_000


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a pool, as the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "odd_files_net.py").write_text(NET)
    np.save("pool.npy", X)
    columns = {"x": list(X), "z": list(X[:, :3]), "struct": [{"a": 1.0}] * 30, "name": range(30)}
    pq.write_table(pa.table(columns), "pool.parquet")
    return tmp_path


def select(*options, pool="pool.npy", strategy="entropy", out="picks.csv"):
    return main(
        [
            "select",
            "--pool",
            pool,
            "--n",
            "1" if "bad" in pool else "3",
            "--strategy",
            strategy,
            "--out",
            out,
            *options,
        ]
    )


NPY = ("--model", "odd_files_net:net")
TABLE = ("--features", "x", "--logits", "z")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--features", "struct", "--logits", "z"), "column 'struct' must hold lists of floats"),
        ((*TABLE, "--id", "struct"), "identifiers must be texts or whole numbers, got struct"),
        ((*TABLE, "--device", "bogus"), "the device 'bogus' cannot be used here"),
        ((*TABLE, "--device", "meta"), "the device 'meta' cannot be used here"),
    ],
)
def test_columns_and_devices(folder, capsys, options, message):
    assert select(*options, pool="pool.parquet", strategy="gradnorm") == 2
    assert message in capsys.readouterr().err


def test_a_cache_without_a_limit(folder):
    assert select(*TABLE, "--cache-gib", "inf", pool="pool.parquet", strategy="badge") == 0


@pytest.mark.parametrize(
    "array",
    [
        X.astype(np.longdouble),
        np.array(["a"] * 30),
        np.array(["2020-01-01"] * 30, dtype="M8[D]"),
        np.zeros(30, dtype=[("a", "f4")]),
        np.zeros(30, dtype="V5"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_that_no_tensor_can_hold(folder, capsys, array):
    np.save("odd.npy", array)
    assert select(*NPY, pool="odd.npy") == 2
    assert "an array of numbers that a tensor can hold is expected" in capsys.readouterr().err


def test_arrays_of_another_byte_order_are_read(folder):
    np.save("big.npy", X.astype(">f4"))
    assert select(*NPY, pool="big.npy") == 0


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"PK\x03\x04nothing"])
@pytest.mark.parametrize("name", ["odd.pt", "odd.safetensors"])
def test_weights_that_are_none(folder, capsys, name, content):
    (folder / name).write_bytes(content)
    assert select(*NPY, "--weights", name) == 2
    assert f"error: {name}: no" in capsys.readouterr().err


def test_weights_with_code_in_them_are_not_run(folder, capsys):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(folder / "evil"),)

    torch.save({"weight": Evil()}, "evil.pt")
    assert select(*NPY, "--weights", "evil.pt") == 2
    assert not (folder / "evil").exists()


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: os.mknod(path, 0o20666, os.makedev(1, 3))]
)
def test_a_device_or_a_pipe_is_not_replaced(folder, capsys, make):
    try:
        make("odd.csv")
    except PermissionError:
        pytest.skip("only root makes devices")
    kind = stat.S_IFMT((folder / "odd.csv").stat().st_mode)
    assert select(*NPY, "--overwrite", out="odd.csv") in (2, 3)
    assert "is a device or a pipe, not a file" in capsys.readouterr().err
    assert stat.S_IFMT((folder / "odd.csv").stat().st_mode) == kind


@pytest.mark.parametrize(
    ("name", "content", "command", "code"),
    [
        ("deep.toml", "a = " + "[" * DEEP + "]" * DEEP, ["run", "deep.toml"], 2),
        ("deep.json", "[" * DEEP, ["report", "deep.json"], 3),
        ("deep.jsonl", "[" * DEEP, ["select", *("--exclude", "deep.jsonl")], 2),
    ],
)
def test_what_is_nested_too_deeply(folder, capsys, name, content, command, code):
    (folder / name).write_text(content)
    if command[0] == "select":
        assert select(*NPY, *command[1:]) == code
    else:
        assert main(command) == code
    assert "error: " in capsys.readouterr().err


def test_an_option_that_is_nested_too_deeply(folder, capsys):
    assert select(*NPY, "--option", "shortlist=" + "[" * DEEP, strategy="grad-spread") == 2


def test_identifiers_with_characters_that_part_lines_on_a_screen(tmp_path):
    odd = ["a\u2028b", "c\x0bd", "e\x85f", "g"]
    (tmp_path / "ids.txt").write_text("\n".join(odd) + "\n", encoding="utf-8")
    assert identifiers_in(tmp_path / "ids.txt", None) == odd
    (tmp_path / "ids.jsonl").write_text('{"id": "a\u2028b"}\n', encoding="utf-8")
    assert identifiers_in(tmp_path / "ids.jsonl", None) == odd[:1]


def test_texts_of_parquet_that_are_no_utf_8(folder, capsys):
    bad = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xb4")]
    )
    column = pa.chunked_array([bad])
    pq.write_table(
        pa.table({"said": column, "label": ["a"], "x": [[1.0]], "z": [[1.0, 2.0]]}), "bad.parquet"
    )
    made = main(
        ["label", "p", "--data", "bad.parquet", "--text", "said", "--classes", "a,b", "--no-server"]
    )
    assert made == 2
    assert (
        select("--features", "x", "--logits", "z", "--id", "said", "--id-check", pool="bad.parquet")
        == 2
    )
    said = capsys.readouterr().err
    assert said.count("column 'said' is damaged, or its texts are not UTF-8") == 2
