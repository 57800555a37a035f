"""A user's own data: images in folders, rows and texts in a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from askance import data
from askance.errors import AskanceError, DataError
from askance.images import decode_image


def picture_folder(root, classes=("cat", "dog"), count=12, size=(40, 30)):
    for label, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        for row in range(count):
            image = Image.new("RGB", size, (100 * label, row, 7))
            image.save(root / name / f"{row}.{('png', 'bmp')[row % 2]}")
    return root


def test_a_folder_of_images(tmp_path):
    root = picture_folder(tmp_path / "pets")
    (root / "cat" / "deeper").mkdir()
    Image.new("L", (500, 400), 9).save(root / "cat" / "deeper" / "gray.jpg")
    (root / "cat" / "notes.txt").write_text("left out")
    (root / ".hidden").mkdir()
    (root / "README").write_text("left out")
    dataset = data.from_image_folder(root)
    assert (dataset.name, dataset.kind, dataset.classes) == ("pets", "image", ("cat", "dog"))
    assert len(dataset.train) + len(dataset.val) + len(dataset.test) == 25
    assert dataset.train.inputs.shape[1:] == (3, 32, 32)
    for i in range(len(dataset.raw)):
        raw = dataset.raw[i]
        assert raw.shape in ((30, 40, 3), (205, 256, 3))
        if raw.shape == (30, 40, 3):
            assert raw[0, 0, 0] == 100 * dataset.train.labels[i]
            value = (raw[0, 0] / 255 - 0.5) / 0.5
            np.testing.assert_allclose(dataset.train.inputs[i, :, 3, 3], value, atol=1e-6)


def test_the_same_folder_gives_the_same_splits(tmp_path):
    root = picture_folder(tmp_path / "pets")
    one, two = data.from_image_folder(root), data.from_image_folder(str(root))
    np.testing.assert_array_equal(one.train.index, two.train.index)


def test_an_unreadable_image_is_named(tmp_path):
    root = picture_folder(tmp_path / "pets")
    (root / "dog" / "broken.png").write_bytes((root / "dog" / "0.png").read_bytes()[:40])
    with pytest.raises(DataError, match=r"broken.png: not a readable image"):
        data.from_image_folder(root)


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_grey_of_16_bits_keeps_its_shades(suffix, tmp_path):
    shades = np.linspace(0, 65535, 1024).astype(np.uint16).reshape(32, 32)
    path = tmp_path / f"deep.{suffix}"
    Image.fromarray(shades).save(path)
    np.testing.assert_array_equal(decode_image(path, "deep")[..., 0], shades >> 8)


def test_grey_of_32_bits_is_refused(tmp_path):
    Image.fromarray(np.full((32, 32), 0.5, dtype=np.float32)).save(tmp_path / "floats.tif")
    with pytest.raises(DataError, match=r"floats\.tif: an image of 32 bits a pixel.* 8 or 16"):
        decode_image(tmp_path / "floats.tif", "floats.tif")


def test_a_huge_image_is_named(tmp_path):
    root = picture_folder(tmp_path / "pets")
    Image.new("1", (8_500, 8_000)).save(root / "dog" / "huge.png")
    with pytest.raises(DataError, match=r"huge.png: an image of 8500×8000 pixels"):
        data.from_image_folder(root)


def test_links_that_leave_the_folder(tmp_path):
    root = picture_folder(tmp_path / "pets")
    outside = tmp_path / "secret.png"
    Image.new("RGB", (9, 9)).save(outside)
    (root / "dog" / "link.png").symlink_to(outside)
    with pytest.raises(DataError, match=r"link.png: a link that leaves"):
        data.from_image_folder(root)
    (root / "dog" / "link.png").unlink()
    (root / "fox").symlink_to(tmp_path)
    with pytest.raises(DataError, match="fox: a link that leaves"):
        data.from_image_folder(root)
    (root / "fox").unlink()
    (root / "fox").symlink_to(root / "dog")
    with pytest.raises(DataError, match="fox: a link to a folder"):
        data.from_image_folder(root)
    (root / "fox").unlink()
    (root / "dog" / "inside.png").symlink_to(root / "dog" / "0.png")
    data.from_image_folder(root)


@pytest.mark.parametrize(
    ("classes", "count", "message"),
    [
        ((), 0, "it is empty, with no folder for a class; expected a folder of images for each"),
        (("cat",), 9, "at least two classes are needed, found only 'cat'"),
        (("cat", "dog"), 2, r"at least 3 items.*too few of 'cat' \(2\), 'dog' \(2\)"),
        (("cat", "dog"), 0, r"too few of 'cat' \(0\)"),
    ],
)
def test_folders_that_cannot_be_split(classes, count, message, tmp_path):
    (tmp_path / "pets").mkdir()
    root = picture_folder(tmp_path / "pets", classes, count)
    with pytest.raises(DataError, match=message):
        data.from_image_folder(root)


def test_images_without_folders_of_classes_are_told_from_an_empty_folder(tmp_path):
    for name in ("a.png", "b.jpg"):
        Image.new("RGB", (9, 9)).save(tmp_path / name)
    with pytest.raises(DataError, match=r"2 images lie in it, with no folder for a class.* label"):
        data.from_image_folder(tmp_path)


def test_no_such_folder(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        data.from_image_folder(tmp_path / "none")


# --- tables ---------------------------------------------------------------------------------------


def columns(count=60):
    rng = np.random.default_rng(0)
    return {
        "width": rng.normal(size=count),
        "height": rng.integers(0, 9, count),
        "label": [("spam", "eggs", "ham")[row % 3] for row in range(count)],
    }


def saved(path, content):
    table = pa.table(content)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        sign = "\t" if path.suffix == ".tsv" else ","
        rows = zip(*(table[name].to_pylist() for name in table.column_names), strict=True)
        lines = [table.column_names, *rows]
        text = "\n".join(sign.join("" if v is None else f"{v}" for v in line) for line in lines)
        path.write_text(text)
    return path


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_a_table_of_features(suffix, tmp_path):
    content = columns()
    dataset = data.from_table(saved(tmp_path / f"mine.{suffix}", content))
    assert (dataset.name, dataset.kind, dataset.classes) == (
        "mine",
        "tabular",
        ("eggs", "ham", "spam"),
    )
    assert (len(dataset.train), len(dataset.val), len(dataset.test)) == (44, 4, 12)
    row = dataset.train.index[2]
    np.testing.assert_allclose(
        dataset.raw[2], [content["width"][row], content["height"][row]], rtol=1e-6
    )
    assert dataset.classes[dataset.train.labels[2]] == content["label"][row]
    assert abs(float(dataset.train.inputs.mean())) < 1e-6


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_of_texts(suffix, tmp_path):
    content = {
        "title": [f"number{row}" for row in range(60)],
        "body": [f"{('apples', 'pears')[row % 2]} and the word{row % 5}" for row in range(60)],
        "kind": [row % 2 for row in range(60)],
    }
    path = saved(tmp_path / f"mine.{suffix}", content)
    dataset = data.from_table(path, label="kind", text="body")
    assert (dataset.kind, dataset.classes) == ("text", ("0", "1"))
    assert dataset.train.inputs.shape[1] == 7, "stop words left in, or words left out"
    assert dataset.raw[0] == content["body"][dataset.train.index[0]]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            {},
            {"label": "class"},
            "no column 'class'; it has width, height, label; name the column of labels",
        ),
        ({}, {"text": "body"}, "no column 'body'"),
        ({}, {"text": "width"}, "column 'width' must hold texts, got double"),
        ({"colour": ["red"] * 60}, {}, "must be numeric, 'colour' are not; .* text="),
        ({"label": ["spam"] * 60}, {}, "at least two classes are needed, found only 'spam'"),
        ({"label": ["spam"] * 58 + ["ham"] * 2}, {}, r"too few of 'ham' \(2\)"),
        ({"label": [0.5, 1.5] * 30}, {}, "must hold names or whole numbers of classes, got double"),
        ({"width": [float("nan"), *([1.0] * 59)]}, {}, "column 'width', row 0 is NaN or infinite"),
        ({"width": [None, *([1.0] * 59)]}, {}, "1 empty values in column 'width'"),
        ({"label": [None, *(["spam", "ham"] * 30)][:60]}, {}, "1 empty values in column 'label'"),
        ({"body": ["the and of"] * 60}, {"text": "body"}, "no words to learn from"),
    ],
)
def test_tables_that_are_refused(change, options, message, tmp_path):
    path = saved(tmp_path / "mine.parquet", {**columns(), **change})
    with pytest.raises(DataError, match=message):
        data.from_table(path, **options)


def test_a_table_with_labels_alone(tmp_path):
    path = saved(tmp_path / "mine.csv", {"label": ["a", "b"] * 10})
    with pytest.raises(DataError, match="no column of features beside 'label'"):
        data.from_table(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "no such file"),
        ("mine.xlsx", b"PK", r"expected .csv, .tsv or .parquet"),
        ("mine.parquet", b"PAR1", "not Parquet"),
        ("mine.csv", b"", "not a readable table"),
        ("mine.csv", b"a,label\n1,x\n1,2,3\n", "not a readable table"),
        ("mine.csv", "a,label\n1,x\n".encode("utf-16"), "expected UTF-8, columns parted by ','"),
        ("mine.csv", "a,label\n1,é\n".encode("latin-1"), "'label' is not UTF-8; save the file as"),
        ("mine.csv", b"a,a,label\n1,2,x\n", "several columns are named 'a'"),
        ("mine.csv", b",a,label\n" + b"0,1,x\n1,2,y\n" * 9, "without a name.*index=False"),
        ("mine.csv", b"a,label\n" + b"1,x\n2,y\n3,\n" * 9, "9 rows have no label in column"),
        (
            "mine.csv",
            b"a,label\n" + b"1,x\n,y\n" * 9,
            "9 empty values in column 'a', the first in row 1; fill",
        ),
    ],
)
def test_files_that_are_no_tables(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        data.from_table(tmp_path / name)


def test_nobody_is_told_to_delete_a_table_of_their_own(tmp_path):
    (tmp_path / "mine.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError) as refused:
        data.from_table(tmp_path / "mine.parquet")
    assert "delete it" not in str(refused.value)


def test_texts_of_digits_are_texts(tmp_path):
    rows = "".join(f"00{row % 5}7,{'ab'[row % 2]}\n" for row in range(60))
    (tmp_path / "codes.csv").write_text("code,label\n" + rows)
    codes = data.from_table(tmp_path / "codes.csv", text="code")
    assert codes.raw[0].startswith("00")


# --- chosen columns -------------------------------------------------------------------------------


def with_embeddings(path, kind):
    """60 rows: an id, a number, and three numbers as a list and as columns."""
    draws = np.random.default_rng(0)
    emb = draws.normal(size=(60, 3)).round(4)
    columns = {
        "id": [f"row {i}" for i in range(60)],
        "age": list(range(60)),
        "emb": emb.tolist(),
        **{f"e{j}": emb[:, j].tolist() for j in range(3)},
        "label": ["ab"[i % 2] for i in range(60)],
    }
    if kind == "parquet":
        pq.write_table(pa.table(columns), path)
        return emb
    made = {**columns, "emb": [f"[{' '.join(map(str, row))}]" if i % 2 else str(row)
                               for i, row in enumerate(columns["emb"])]}  # fmt: skip
    lines = [",".join(f'"{value}"' for value in row) for row in zip(*made.values(), strict=True)]
    path.write_text("\n".join([",".join(made), *lines]))
    return emb


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("features", "names"),
    [
        ("emb", "emb"),
        (["emb"], "emb"),
        (["e0", "e1", "e2"], "emb"),
        (["e0", "e*"], "emb3"),
        (["age", "emb"], "age emb"),
        ("age", "age"),
    ],
)
def test_columns_of_features_are_taken_and_others_left_alone(tmp_path, kind, features, names):
    emb = with_embeddings(tmp_path / f"mine.{kind}", kind)
    age = np.arange(60.0)[:, None]
    parts = {"age": age, "emb": emb}
    # Here e* is emb and e0, e1, e2, after e0 was named: six columns.
    expected = (
        np.concatenate([emb[:, :1], emb, emb[:, 1:]], axis=1)
        if names == "emb3"
        else np.concatenate([parts[name] for name in names.split()], axis=1)
    )
    dataset = data.load(tmp_path / f"mine.{kind}", features=features)
    assert dataset.train.inputs.shape[1] == expected.shape[1]
    pool = expected[dataset.train.index]
    standard = (pool - pool.mean(axis=0)) / pool.std(axis=0)
    np.testing.assert_allclose(dataset.train.inputs, standard, atol=1e-5)
    np.testing.assert_allclose(dataset.raw[0], pool[0], rtol=1e-5)


def test_a_star_leaves_the_label_out(tmp_path):
    (tmp_path / "a.csv").write_text(
        "e0,kind_of,k\n" + "".join(f"{i},{'xy'[i % 2]},3\n" for i in range(30))
    )
    dataset = data.load(tmp_path / "a.csv", label="kind_of", features=["e0", "k*"])
    assert dataset.train.inputs.shape[1] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "embedding"}, "no column 'embedding' of features; it has id, age"),
        ({"features": "x*"}, r"no column 'x\*' of features"),
        ({"features": ["age", "label"]}, "'label' holds the labels"),
        ({"features": []}, "at least one column of features"),
        ({"features": "id"}, r"column 'id', row 0 must hold a number, or a list"),
        ({"features": "emb", "text": "id"}, "leave text and encoder out, or features"),
        ({"features": "emb", "encoder": "minilm"}, "leave text and encoder out, or features"),
        ({}, r"'id', 'emb' are not; drop them, name the columns to learn from with features="),
    ],
)
def test_columns_that_cannot_be_features_are_named(tmp_path, options, message):
    with_embeddings(tmp_path / "mine.csv", "csv")
    with pytest.raises(AskanceError, match=message):
        data.load(tmp_path / "mine.csv", **options)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("[1, 2, 3]", "row 0 has 2, row 7 has 3"),
        ("[1 ... 2]", "NumPy cut it short, so write lists"),
        ("[]", "row 7 has 0"),
        ("[1, nan]", "row 7 is NaN or infinite"),
        ("1, 2", "must hold a number, or a list of numbers"),
    ],
)
def test_a_list_that_is_written_otherwise_is_named(tmp_path, cell, message):
    cells = ["[1, 2]"] * 30
    cells[7] = cell
    lines = [f'"{each}",{"ab"[i % 2]}' for i, each in enumerate(cells)]
    (tmp_path / "mine.csv").write_text("emb,label\n" + "\n".join(lines))
    with pytest.raises(DataError, match=message):
        data.load(tmp_path / "mine.csv", features="emb")


def test_features_are_for_a_table(tmp_path):
    with pytest.raises(DataError, match="for a table of your own"):
        data.load("digits", features="x")
    picture_folder(tmp_path / "pets")
    with pytest.raises(DataError, match="leave label, text and features out"):
        data.load(tmp_path / "pets", features="x")


def test_a_column_of_identifiers_is_no_feature(tmp_path):
    def load(name, values):
        rows = [f"{value},{row % 7},{'ab'[row % 2]}" for row, value in enumerate(values)]
        (tmp_path / "mine.csv").write_text("\n".join([f"{name},x,label", *rows]))
        return data.load(tmp_path / "mine.csv", label="label")

    with pytest.raises(DataError, match="column 'user_id' looks like an identifier"):
        load("user_id", range(30))
    assert load("user_id", [row % 5 for row in range(30)]).train.inputs.shape[1] == 2
    assert load("width", range(30)).train.inputs.shape[1] == 2


@pytest.mark.parametrize("form", ["texts", "numbers"])
def test_copies_are_counted(tmp_path, caplog, form):
    cells = [f"{row}.5" if form == "numbers" else f"text {row}" for row in range(30)]
    cells[20:23] = cells[:3]
    labels = ["ab"[row % 2] for row in range(30)]
    labels[20:23] = ["a", "b", "b"]
    lines = [f"{cell},{label}" for cell, label in zip(cells, labels, strict=True)]
    (tmp_path / "mine.csv").write_text("x,label\n" + "\n".join(lines))
    options = {"text": "x"} if form == "texts" else {}
    data.load(tmp_path / "mine.csv", label="label", **options)
    (record,) = caplog.records
    assert (
        "3 of 30 items are copies of earlier ones, 1 of them with another label" in record.message
    )
