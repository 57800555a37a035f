"""Which item is which, and what a file holds."""

import shutil

from hypothesis import given
from hypothesis import strategies as st

from askance.label import contents
from askance.label.contents import Digests, marks_of
from askance.label.identity import DataChanges, identified
from askance.label.messages import changed

KNOWN = {"a": "1", "b": "2", "c": "3"}


def ids_of(here, known=KNOWN):
    return identified(known, list(here), list(here.values()))


def changes_of(here, known=KNOWN, before=None):
    ids = ids_of(here, known)
    now = known | dict(zip(ids, here.values(), strict=True))
    return DataChanges.between(known if before is None else before, now, ids, list(here))


def test_the_same_is_the_same():
    assert ids_of(KNOWN) == ["a", "b", "c"]
    assert changes_of(KNOWN) == DataChanges()
    assert ids_of(dict(reversed(KNOWN.items()))) == ["c", "b", "a"]


def test_a_renamed_file_is_the_item_it_was():
    assert ids_of({"b": "2", "c": "3", "z": "1"}) == ["b", "c", "a"]
    assert changes_of({"b": "2", "c": "3", "z": "1"}) == DataChanges(renamed=1)


def test_names_that_were_swapped():
    assert ids_of({"a": "2", "b": "1", "c": "3"}) == ["b", "a", "c"]
    assert changes_of({"a": "2", "b": "1", "c": "3"}) == DataChanges(renamed=2)


def test_other_content_under_an_old_name_is_another_item():
    assert ids_of({"a": "9", "b": "2", "c": "3"}) == ["a@9", "b", "c"]
    assert changes_of({"a": "9", "b": "2", "c": "3"}) == DataChanges(changed=1)
    again = KNOWN | {"a@9": "9"}
    assert ids_of({"a": "9", "b": "2", "c": "3"}, again) == ["a@9", "b", "c"]
    assert ids_of({"a": "1", "b": "2", "c": "3"}, again) == ["a", "b", "c"]
    assert changes_of({"b": "2", "c": "3"}, again) == DataChanges(missing=1)


def test_a_row_put_before_the_others():
    rows = {"0": "9", "1": "1", "2": "2", "3": "3"}
    known = {"0": "1", "1": "2", "2": "3"}
    assert ids_of(rows, known) == ["0@9", "0", "1", "2"]
    assert changes_of(rows, known) == DataChanges(new=1, renamed=3)
    assert changes_of({"0": "2", "1": "3"}, known) == DataChanges(missing=1, renamed=2)


def test_copies_are_items_of_their_own_in_their_order():
    known = {"0": "x", "1": "y", "2": "x"}
    assert ids_of({"0": "new", "1": "x", "2": "y", "3": "x"}, known) == ["0@new", "0", "1", "2"]
    assert ids_of({"0": "x", "1": "x", "2": "x"}, known) == ["0", "1@x", "2"]


def test_a_file_that_is_named_like_a_changed_one():
    known = {"a": "1", "a@9": "8"}
    assert ids_of({"a": "9", "a@9": "8"}, known) == ["a@9@9", "a@9"]


def test_before_images_had_digests_the_name_decides():
    assert ids_of({"a": "7", "z": "1"}, {"a": None, "b": None}) == ["a", "z"]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("12345"), max_size=6),
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("12345"), max_size=6),
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("12345"), max_size=6),
)
def test_whatever_happens_an_id_is_one_content(first, second, third):
    """Ids are unique, never change their content, and come back with it."""
    known = dict(first)
    for here in (second, third, second):
        ids = ids_of(here, known)
        assert len(set(ids)) == len(here)
        now = dict(zip(ids, here.values(), strict=True))
        assert all(known.get(item, digest) == digest for item, digest in now.items())
        assert changes_of(here, known).new <= len(set(now) - set(known))
        known |= now
    assert ids_of(first, known) == list(first)


def test_the_changes_in_words():
    assert changed(DataChanges()) == ""
    assert changed(DataChanges(new=3, missing=1)) == (
        "The data has changed: 3 new items found, 1 item is missing. Answers about missing "
        "items are kept."
    )
    assert changed(DataChanges(changed=2, renamed=1)) == (
        "The data has changed: 2 items have other content now: the old one is missing, the new one "
        "is added, 1 item has another name or place now and keeps its answers. Answers about missing "
        "items are kept."
    )


def read_by(monkeypatch):
    """The files whose content is read."""
    read, digest = [], contents._digest
    monkeypatch.setattr(contents, "_digest", lambda file: read.append(file.name) or digest(file))
    return read


def test_only_what_changed_is_read_again(tmp_path, monkeypatch):
    read = read_by(monkeypatch)
    root = tmp_path / "data"
    root.mkdir()
    names = [f"{i}.png" for i in range(5)]
    for name in names:
        (root / name).write_bytes(name.encode())
    kept = tmp_path / contents.FILE
    digests = Digests(kept)
    first = digests.of(root, names)
    digests.save()
    assert sorted(read) == names
    read.clear()
    assert digests.of(root, names) == Digests(kept).of(root, names) == first
    assert read == []
    (root / "2.png").write_bytes(b"other")
    (root / "3.png").unlink()
    now = Digests(kept).of(root, names)
    assert read == ["2.png"]
    assert now[3] is None
    assert (now[2] == first[2], now[:2] == first[:2]) == (False, True)
    kept.write_text('{"0.png": 3}')
    assert Digests(kept).of(root, names) == now


def test_the_time_set_back_hides_no_change(tmp_path, monkeypatch):
    read = read_by(monkeypatch)
    file = tmp_path / "a.png"
    file.write_bytes(b"one")
    digests = Digests()
    before, mark = digests.of(tmp_path, ["a.png"]), marks_of(tmp_path)
    other = tmp_path / "other"
    other.write_bytes(b"two")
    shutil.copystat(file, other)
    other.replace(file)
    assert marks_of(tmp_path) != mark
    assert digests.of(tmp_path, ["a.png"]) != before
    assert read == ["a.png", "a.png"]


def test_marks_of_a_folder(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("a.png", "deep/b.JPG", "notes.txt", ".hidden.png"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "gone.png").symlink_to(tmp_path / "nowhere.png")
    marks = marks_of(tmp_path)
    assert set(marks) == {"a.png", "deep/b.JPG", "gone.png"}
    assert marks_of(tmp_path / "a.png") == {"a.png": marks["a.png"]}
    assert marks_of(tmp_path / "none") == {}
