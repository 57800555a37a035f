"""What cannot be read is named, or skipped and counted; nothing is guessed."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch import nn
from torch.utils.data import IterableDataset

import askance
from askance.errors import DataError, InputError, LabelError, NonFiniteError, ShardError
from askance.pools import (
    Columns,
    IterableSource,
    LocalEngine,
    MemmapSource,
    ModelRecipe,
    Naming,
    ParquetSource,
    open_source,
    select_from,
)
from askance.pools.decode import Imported
from askance.pools.duplicates import IdHashes, duplicates
from askance.pools.ids import id_hashes
from askance.strategies import Grad
from tests.pools import worlds

NAMED = Columns(features=("features",), logits=("logits",), id="name")


@pytest.fixture
def pool():
    return worlds.embedding(30)


@pytest.fixture
def folder(tmp_path, pool):
    return worlds.write(tmp_path / "pool", pool, [10, 10, 10])


def picks(address, columns=worlds.VECTORS, n=4, **options):
    return select_from(ParquetSource.open(str(address), columns), n, strategy="gradnorm", **options)


def without(pool, rows):
    """What `select` picks where those rows are not there."""
    return askance.select(None, None, pool, 4, strategy="gradnorm", exclude=rows).indices.tolist()


def garbled(path, at, count=64):
    data = bytearray(path.read_bytes())
    data[at : at + count] = b"\xff" * count
    path.write_bytes(bytes(data))


def test_a_shard_without_a_footer(folder, pool, tmp_path):
    path = tmp_path / "pool" / "part-001.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ShardError, match=r"part-001\.parquet: cut short, corrupt or not Parquet"):
        picks(folder)
    selection = picks(folder, on_error="skip")
    assert [skip.shard for skip in selection.read.skipped] == [True]
    assert "part-001.parquet" in selection.read.skipped[0].what
    assert selection.read.rows == 20


def test_a_shard_with_damaged_pages(folder, pool, tmp_path):
    """Found when it is read; none of its rows is picked, and the others keep their positions."""
    garbled(tmp_path / "pool" / "part-001.parquet", 4)
    with pytest.raises(ShardError, match=r"part-001\.parquet: cut short, corrupt or not Parquet"):
        picks(folder)
    selection = picks(folder, on_error="skip")
    assert (selection.read.skipped[0].rows, selection.read.skipped[0].shard) == (10, True)
    assert selection.indices.tolist() == without(pool, range(10, 20))


def test_a_missing_column(folder, pool, tmp_path):
    some = worlds.table(pool[slice(10, 20)]).drop_columns(["logits"])
    pq.write_table(some, tmp_path / "pool" / "part-001.parquet")
    with pytest.raises(ShardError, match=r"part-001\.parquet: no column 'logits'; it has features"):
        picks(folder)
    selection = picks(folder, on_error="skip")
    assert selection.indices.tolist() == without(pool, range(10, 20))
    assert sum(skip.rows for skip in selection.read.skipped) == 10


def test_a_changed_schema(folder, pool, tmp_path):
    other = askance.Embedding(pool.logits[10:20].float(), pool.features[10:20])
    pq.write_table(worlds.table(other), tmp_path / "pool" / "part-001.parquet")
    match = r"part-001\.parquet: column 'logits' is of type .*float.*in part-000\.parquet"
    with pytest.raises(ShardError, match=match):
        picks(folder)
    assert picks(folder, on_error="skip").indices.tolist() == without(pool, range(10, 20))


@pytest.mark.parametrize("change", ["gone", "other"])
def test_a_shard_that_vanishes_or_changes_between_listing_and_reading(
    folder, pool, tmp_path, change
):
    source = ParquetSource.open(folder, worlds.VECTORS)
    path = tmp_path / "pool" / "part-002.parquet"
    if change == "gone":
        path.unlink()
    else:
        os.utime(path, ns=(1, 1))
    match = (
        "was there when the pool was listed and is gone" if change == "gone" else "changed after"
    )
    with pytest.raises(ShardError, match=rf"part-002\.parquet: .*{match}"):
        select_from(source, 4, strategy="gradnorm")
    selection = select_from(source, 4, strategy="gradnorm", on_error="skip")
    assert selection.indices.tolist() == without(pool, range(20, 30))


def test_lists_of_unequal_lengths_and_empty_values(tmp_path):
    for name, column in (
        ("ragged", pa.array([[1.0, 2.0], [1.0], [3.0]])),
        ("holes", pa.array([[1.0, None], [1.0, 2.0]])),
        ("nulls", pa.array([[1.0, 2.0], None])),
        ("texts", pa.array([["a"], ["b"]])),
    ):
        pq.write_table(pa.table({"z": column}), tmp_path / f"{name}.parquet")
        with pytest.raises(ShardError, match=rf"{name}\.parquet: .*column 'z'"):
            select_from(
                ParquetSource.open(str(tmp_path / f"{name}.parquet"), Columns(logits=("z",))),
                1,
                strategy="entropy",
            )


def test_a_bad_image_is_a_row_not_a_shard(tmp_path):
    images = worlds.pictures(8)
    for number, image in enumerate(images):
        (tmp_path / f"{number}.png").write_bytes(worlds.png(image))
    (tmp_path / "3.png").write_bytes(b"no image")
    source = open_source(str(tmp_path))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 3))
    with pytest.raises(ShardError, match=r"3\.png: .*not a readable image"):
        select_from(source, 2, model=model, strategy="entropy")
    (tmp_path / "5.png").unlink()
    selection = select_from(source, 6, model=model, strategy="entropy", on_error="skip")
    assert sorted(selection.indices.tolist()) == [0, 1, 2, 4, 6, 7]
    assert [(skip.rows, skip.shard) for skip in selection.read.skipped] == [(1, False), (1, False)]
    with pytest.raises(InputError, match="7 points were asked for, and 6 are there to be picked"):
        select_from(source, 7, model=model, strategy="entropy", on_error="skip")


def test_a_damaged_tar(tmp_path):
    files = [worlds.png(image) for image in worlds.pictures(6)]
    samples = [(f"k{number}", {"png": data}) for number, data in enumerate(files)]
    worlds.tar(tmp_path / "a.tar", samples[:3])
    worlds.tar(tmp_path / "b.tar", samples[3:])
    data = (tmp_path / "b.tar").read_bytes()
    (tmp_path / "b.tar").write_bytes(data[: len(data) // 3])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 3))
    source = open_source(str(tmp_path))
    with pytest.raises(ShardError, match=r"b\.tar: cut short, corrupt or not a tar file"):
        select_from(source, 2, model=model, strategy="entropy")
    selection = select_from(source, 2, model=model, strategy="entropy", on_error="skip")
    assert selection.read.rows == 3


def test_repeated_identifiers(tmp_path, pool):
    names = [f"row-{row}" for row in range(30)]
    names[25] = names[4]
    address = worlds.write(tmp_path, pool, [10, 10, 10], name=names)
    match = r"occur twice: 'row-4' in part-000\.parquet and again in part-002\.parquet"
    with pytest.raises(ShardError, match=match):
        picks(address, NAMED)
    selection = picks(address, NAMED, n=29, on_error="skip")
    assert 25 not in selection.indices
    assert len(set(selection.ids)) == 29
    assert selection.read.skipped[-1].rows == 1
    assert "earlier row" in selection.read.skipped[-1].what
    best = picks(address, NAMED, on_error="skip")
    assert best.indices.tolist() == without(pool, [25])
    assert picks(address, NAMED, check_ids=False).read.rows == 30


def test_equal_hashes_are_a_suspicion_not_a_proof(tmp_path, pool, monkeypatch):
    """Different identifiers of one hash are told apart by their text."""
    names = [f"row-{row}" for row in range(30)]
    address = worlds.write(tmp_path, pool, [15, 15], name=names)
    coarse = lambda texts: np.array([len(str(t)) for t in texts], dtype=np.uint64)  # noqa: E731
    monkeypatch.setattr("askance.pools.ids.text_hashes", coarse)
    assert len(picks(address, NAMED)) == 4
    names[29] = names[3]
    address = worlds.write(tmp_path, pool, [15, 15], name=names)
    with pytest.raises(ShardError, match=r"'row-3' in part-000\.parquet and again in part-001"):
        picks(address, NAMED)


@pytest.mark.parametrize("memory", [1 << 20, 4096])
def test_repeated_values_are_found_in_bounded_memory(memory):
    values = np.random.default_rng(0).integers(0, 5000, 3000, dtype=np.uint64)
    with IdHashes(memory) as seen:
        for part in np.array_split(values, 7):
            seen.add(part)
        repeated = seen.repeated()
    unique, counts = np.unique(values, return_counts=True)
    assert repeated.tolist() == unique[counts > 1].tolist()


def test_every_repetition_is_counted(tmp_path, pool):
    names = ["a", "b", "a", "c", "a", "b"]
    worlds.write(tmp_path, pool[slice(0, 6)], [3, 3], name=names)
    source = ParquetSource.open(str(tmp_path), NAMED)
    suspects = np.unique(id_hashes(next(source.read(source.shards[0], 3, frozenset())).ids))
    repeats = list(duplicates(source, suspects, frozenset(), "raise"))
    assert [(again.id, again.position) for again in repeats] == [("a", 2), ("a", 4), ("b", 5)]


def test_excluded_identifiers_are_not_picked(folder, pool):
    whole = askance.select(None, None, pool, 4, strategy="gradnorm").indices.tolist()
    names = [f"part-{row // 10:03d}.parquet:{row % 10}" for row in whole[:2]]
    selection = picks(folder, exclude=[*names, "part-000.parquet:99", "elsewhere"])
    assert selection.indices.tolist() == without(pool, whole[:2])
    assert selection.read.excluded == 2
    with pytest.raises(InputError, match="30 points were asked for, and 28 are there"):
        picks(folder, n=30, exclude=names)


def test_questions_without_an_answer(folder, tmp_path, pool):
    source = ParquetSource.open(folder, worlds.VECTORS)
    with pytest.raises(InputError, match="n = 31 points were asked for, the pool has 30"):
        select_from(source, 31, strategy="entropy")
    with pytest.raises(
        LabelError, match="compares the pool with the labelled set, and there is none"
    ):
        select_from(source, 3, strategy="grad")
    with pytest.raises(LabelError, match="a labelled set needs labels"):
        select_from(source, 3, labeled=source)
    with pytest.raises(InputError, match="differentiates the model itself"):
        select_from(source, 3, strategy=askance.strategies.Grad(parameters="all"), labeled=source)
    logits = ParquetSource.open(folder, Columns(logits=("logits",)))
    with pytest.raises(InputError, match="its rows have no features"):
        select_from(logits, 3, strategy="gradnorm")
    with pytest.raises(InputError, match="needs to know which of its columns"):
        open_source(folder)
    with pytest.raises(InputError, match="name one of them"):
        open_source(folder, Naming(image="a", features=("b",)))
    with pytest.raises(InputError, match="name the column of its labels"):
        open_source(folder, Naming(logits=("logits",)), labeled=True)
    other = worlds.embedding(9)
    other = askance.Embedding(other.logits[:, :2], other.features)
    worlds.write(tmp_path / "other", other, [9], label=np.arange(9) % 2)
    with pytest.raises(
        InputError, match="labelled logits must have the same number of columns, got 3 and 2"
    ):
        select_from(source, 3, labeled=ParquetSource.open(str(tmp_path / "other"), worlds.LABELED))


def test_numbers_that_are_none(tmp_path):
    pool = worlds.embedding(12)
    pool.logits[7, 1] = float("nan")
    address = worlds.write(tmp_path, pool, [5, 7])
    with pytest.raises(NonFiniteError, match="the first is row 7"):
        picks(address)


def test_the_first_error_of_a_worker_is_raised_and_all_stop(folder):
    source = ParquetSource.open(folder, worlds.VECTORS)

    class Bad:
        device = None

        def opened(self):
            from contextlib import nullcontext

            return nullcontext(self.work)

        def work(self, shard):
            if shard.index == 1:
                raise DataError("no")
            return shard.index

    with pytest.raises(DataError, match="no"):
        list(LocalEngine(2).map(Bad(), source.shards))


def test_weights_that_are_not_the_models(tmp_path):
    made = "tests.pools.test_errors:network"
    torch.save(network().state_dict(), tmp_path / "good.pt")
    assert ModelRecipe(made, str(tmp_path / "good.pt")).build().weight.shape == (3, 4)
    from safetensors.torch import save_file

    save_file(network(4).state_dict(), tmp_path / "good.safetensors")
    safe = ModelRecipe(made, str(tmp_path / "good.safetensors"), (("classes", 4),))
    assert torch.equal(safe.build().weight, network(4).weight)
    torch.save(network(2).state_dict(), tmp_path / "other.pt")
    with pytest.raises(InputError, match=r"the weights in .*other\.pt are not of model"):
        ModelRecipe(made, str(tmp_path / "other.pt")).build()
    torch.save(network(), tmp_path / "pickled.pt")
    with pytest.raises(InputError, match="no file of weights alone"):
        ModelRecipe(made, str(tmp_path / "pickled.pt")).build()
    (tmp_path / "bad.safetensors").write_bytes(b"123456789")
    with pytest.raises(InputError, match=r"not a readable \.safetensors"):
        ModelRecipe(made, str(tmp_path / "bad.safetensors")).build()
    with pytest.raises(InputError, match="no such file of weights"):
        ModelRecipe(made, str(tmp_path / "none.pt")).build()
    with pytest.raises(InputError, match="it raised TypeError"):
        ModelRecipe(made, None, (("width", 1),)).build()


def network(classes=3):
    torch.manual_seed(0)
    return nn.Linear(4, classes)


def test_what_cannot_be_imported_is_called_what_it_is(tmp_path, pool):
    with pytest.raises(InputError, match=r"dataset 'nowhere_at_all:rows': the module .* imported"):
        open_source("nowhere_at_all:rows")
    with pytest.raises(InputError, match=r"model 'tests.pools.test_errors:none'.* has no 'none'"):
        ModelRecipe("tests.pools.test_errors:none").build()
    with pytest.raises(
        InputError, match="transform 'os:sep' must be a function, it is of type str"
    ):
        Imported("os:sep")(b"")


@pytest.mark.parametrize("strategy", ["entropy", "badge"])
def test_a_softmax_over_one_output_is_refused(tmp_path, strategy):
    np.save(tmp_path / "features.npy", np.ones((20, 3), dtype=np.float32))
    np.save(tmp_path / "logits.npy", np.ones((20, 1), dtype=np.float32))
    with pytest.raises(InputError, match="one output"):
        select_from(open_source(str(tmp_path)), 2, strategy=strategy)


@pytest.mark.parametrize("part", ["features", "logits"])
@pytest.mark.parametrize(
    "array", [np.ones(20), np.ones((20, 3), dtype=np.int64), np.ones((20, 2, 2)), np.ones((20, 0))]
)
def test_arrays_that_are_no_matrices_of_numbers(tmp_path, part, array):
    np.save(tmp_path / "features.npy", np.ones((20, 3)))
    np.save(tmp_path / f"{part}.npy", array)
    with pytest.raises(DataError, match=rf"{part} must be floating point, .*shape \(20,"):
        open_source(str(tmp_path))


def test_rows_the_model_cannot_take(tmp_path):
    np.save(tmp_path / "inputs.npy", np.ones((20, 5), dtype=np.float32))
    told = r"cannot take these rows \(RuntimeError: .*shape \(20, 5\), torch\.float32\); are the"
    with pytest.raises(InputError, match=told):
        select_from(open_source(str(tmp_path)), 2, strategy="entropy", model=nn.Linear(4, 3))


@pytest.mark.parametrize("rule", ["entropy", "gradnorm", "badge"])
def test_probabilities_in_one_shard_are_no_logits(tmp_path, pool, rule):
    """Some files were written by another job."""
    pool.logits[10:20] = pool.logits[10:20].softmax(dim=1)
    source = ParquetSource.open(worlds.write(tmp_path / "pool", pool, [10, 10, 10]), worlds.VECTORS)
    with pytest.raises(InputError, match=r"logits of part-001\.parquet look like probabilities"):
        select_from(source, 4, strategy=rule)
    with pytest.raises(InputError, match=r"logits of part-001\.parquet look like probabilities"):
        select_from(source, 4, strategy=rule, batch_size=1, on_error="skip")


def test_probabilities_in_arrays_are_no_logits(tmp_path, pool):
    np.save(tmp_path / "logits.npy", pool.logits.softmax(dim=1).half().numpy())
    with pytest.raises(InputError, match="look like probabilities"):
        select_from(open_source(str(tmp_path)), 4, strategy="margin")
    np.save(tmp_path / "logits.npy", pool.logits.numpy())
    assert len(select_from(open_source(str(tmp_path)), 4, strategy="margin").ids) == 4


@pytest.mark.parametrize("rule", ["grad", Grad(reference_size=5)])
def test_labelled_probabilities_are_no_logits(tmp_path, folder, rule):
    """Summed shard by shard, and gathered."""
    seen = worlds.embedding(9, seed=1)
    seen.logits[:] = seen.logits.softmax(dim=1)
    worlds.write(tmp_path / "seen", seen, [9], label=np.arange(9) % 3)
    labeled = ParquetSource.open(str(tmp_path / "seen"), worlds.LABELED)
    source = ParquetSource.open(folder, worlds.VECTORS)
    with pytest.raises(InputError, match=r"logits of part-000\.parquet look like probabilities"):
        select_from(source, 4, labeled=labeled, strategy=rule)


@pytest.mark.parametrize("kind", ["npy", "parquet", "dataset"])
def test_labels_with_fractions_are_not_cut_off(tmp_path, kind):
    seen = worlds.embedding(3)
    if kind == "npy":
        np.save(tmp_path / "features.npy", seen.features.numpy())
        np.save(tmp_path / "logits.npy", seen.logits.numpy())
        np.save(tmp_path / "labels.npy", np.array([0.9, 1, 2]))
        source = MemmapSource.open(str(tmp_path), labeled=True)
    elif kind == "parquet":
        worlds.write(tmp_path / "l", seen, [3], label=[[0.9, 0], [1, 0], [0, 1]])
        source = ParquetSource.open(str(tmp_path / "l"), worlds.LABELED)
    else:
        source = IterableSource(Labelled(), False, True)
    with pytest.raises(LabelError, match=r"labels must be whole numbers, got .* with fractions"):
        list(source.read(source.shards[0], 8, frozenset({"labels"})))


class Labelled(IterableDataset):
    def __iter__(self):
        yield from zip(torch.zeros(3, 2), [0.9, 1.0, 2.0], strict=True)
