"""Files as people have them: photos on their side, kinds that are not read, broken images, columns."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from askance.encoders import encode
from askance.label import ItemSource, messages
from askance.label.bundle import encoder_for
from askance.label.items import read
from askance.label.media import page_image
from tests.label.small_encoders import colours
from tests.label.worlds import Person, client_of, images_folder, open_features

SIDEWAYS = 6  # EXIF: turn it by 90° to the right to see it as it was taken


def photo(path, *, sideways=False, size=(40, 30)):
    """A photo whose corner says which way is up; sideways as a phone stores it."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 100, (size[1], size[0], 3)).astype(np.uint8)
    pixels[:8, :8] = (255, 0, 0)
    image, exif = Image.fromarray(pixels), Image.Exif()
    if sideways:
        image = image.transpose(Image.Transpose.ROTATE_90)
        exif[0x0112] = SIDEWAYS
    image.save(path, exif=exif)
    return pixels


def damaged(root, name):
    """A JPEG whose end is missing."""
    whole = BytesIO()
    Image.effect_noise((200, 200), 90).convert("RGB").save(whole, "JPEG")
    (root / name).write_bytes(whole.getvalue()[:2000])


def heic(root, name):
    (root / name).write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0" + bytes(100))


def test_a_sideways_photo_is_upright_on_the_page_in_training_and_in_prediction(tmp_path):
    upright, sideways = tmp_path / "a.png", tmp_path / "b.png"
    pixels = photo(upright)
    assert (photo(sideways, sideways=True) == pixels).all()
    with Image.open(sideways) as stored:
        assert stored.size == (30, 40)
    for size in ("small", "page", "full"):
        shown = np.asarray(Image.open(BytesIO(page_image(sideways, tmp_path, None, size).content)))
        assert (shown == pixels).all()
    inputs = encoder_for("image", None)([upright, sideways])
    assert (inputs[0] == inputs[1]).all()
    features = encode(colours(), [upright, sideways]).features
    assert (features[0] == features[1]).all()


def test_a_large_photo_is_shown_in_three_sizes(tmp_path):
    path = tmp_path / "a.jpg"
    photo(path, sideways=True, size=(4000, 3000))
    sizes = {
        size: Image.open(BytesIO(page_image(path, tmp_path, None, size).content)).size
        for size in ("small", "page", "full")
    }
    assert sizes == {"small": (240, 180), "page": (1600, 1200), "full": (4000, 3000)}


def test_kinds_that_are_not_read_are_counted(tmp_path, start):
    root = images_folder(tmp_path, 4)
    heic(root, "one.HEIC")
    heic(root / "deeper", "two.heic")
    (root / "notes.txt").write_text("a note")
    (root / ".hidden.mov").write_text("")
    (root / "README").write_text("no suffix")
    assert read(ItemSource(root)).left_out == {".heic": 2, ".txt": 1, "": 1}
    changes = client_of(start(root)).get("/api/state").json()["changes"]
    assert changes["left_out"] == (
        "4 files are left out: 2 .heic, 1 without a suffix, 1 .txt. HEIC, AVIF and raw images cannot "
        "be read; save them as JPEG or PNG."
    )
    assert messages.left_out({".txt": 1}) == "1 file is left out: 1 .txt."
    assert messages.left_out({}) == ""


@pytest.mark.parametrize("held_out", [0.0, 0.5])
def test_an_image_that_cannot_be_shown_is_never_asked(tmp_path, start, held_out):
    root = images_folder(tmp_path, 8)
    broken = {f"{i}.jpg" for i in range(6)}
    for name in broken - {"0.jpg"}:
        damaged(root, name)
    heic(root, "0.jpg")
    session = start(root, held_out=held_out, batch=100, seed=3)
    ann, asked = Person(client_of(session)), set()
    while questions := ann.ask(3)["questions"]:
        for question in questions:
            asked.add(question["item"])
            assert ann.answer(question, 0).status_code == 200
    assert asked == set(session.items.ids) - broken
    assert ann.ask()["finished"]
    changes = ann.state()["changes"]
    assert changes["unreadable"] == 6
    assert changes["unreadable_text"].startswith(
        "6 images cannot be shown and are not asked: 0.jpg: HEIC images cannot be read; save it as "
        "JPEG or PNG; 1.jpg: not a readable image"
    )
    assert changes["unreadable_text"].endswith("; and 1 more.")
    asked_about = {question.item for question in session.annotations.questions.values()}
    assert not asked_about & broken


def test_a_question_whose_image_cannot_be_shown_any_more_is_withdrawn(tmp_path, start):
    root = images_folder(tmp_path, 6)
    session = start(root, batch=100)
    ann = Person(client_of(session))
    question, *_ = ann.ask(3)["questions"]
    damaged(root, "new.jpg")
    (root / "new.jpg").replace(root / question["item"])
    session.watch.look()
    session.watch.look()
    assert question["item"] not in [one["item"] for one in ann.ask(6)["questions"]]
    # The same content under the old name, which nobody can see.
    session.broken[question["item"]] = "damaged"
    reply = ann.answer(question, 0)
    assert reply.status_code == 409
    assert "cannot be answered" in reply.json()["error"]["message"]
    assert ann.skip(question).status_code == 200


def cells(**columns):
    return [{"name": name, "value": value} for name, value in columns.items()]


def test_the_other_columns_of_a_text_are_beside_it(tmp_path, start):
    table = tmp_path / "t.csv"
    table.write_text("key,said,stars,who,empty\n" + "a7,hello,4,Bo,\n" * 1 + "b8,bye,1,,\n")
    session = start(ItemSource(table, text="said", id="key"), held_out=0.0)
    shown = {q["item"]: q for q in Person(client_of(session)).ask(2)["questions"]}
    assert shown["a7"]["columns"] == cells(key="a7", stars="4", who="Bo")
    assert shown["b8"]["columns"] == cells(key="b8", stars="1")
    assert shown["a7"]["name"] == "a7"
    assert shown["a7"]["text"] == "hello"


def test_features_have_their_columns_as_text(tmp_path):
    session = open_features(tmp_path, 6)
    question = Person(client_of(session)).ask()["questions"][0]
    assert question["columns"] == []
    assert question["text"].startswith("name: item")
    session.close()
