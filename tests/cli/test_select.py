"""`askance select` from end to end: the digits as Parquet, tar, image folder and arrays."""

import csv
import importlib.util
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file
from scipy import special
from sklearn.datasets import load_digits
from torch import nn

from tests.pools import worlds

N, LABELED, POOL = 15, 60, 400

NET = """
import torch
from torch import nn

def net(classes=10):
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, classes))
"""


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A folder with the same pool in every form, and the weights of a network."""
    root = tmp_path_factory.mktemp("digits")
    data = load_digits()
    images = (data.images * 15).astype(np.uint8)[..., None].repeat(3, axis=3)
    labels = data.target
    files = [worlds.png(image) for image in images[: LABELED + POOL]]
    seen, pool = files[:LABELED], files[LABELED:]
    names = [f"d{row:04d}" for row in range(POOL)]
    (root / "parquet").mkdir()
    for part in range(4):
        view = slice(part * 100, part * 100 + 100)
        table = pa.table({"img": pool[view], "name": names[view]})
        pq.write_table(table, root / "parquet" / f"{part}.parquet", row_group_size=40)
    pq.write_table(pa.table({"img": seen, "y": labels[:LABELED]}), root / "labeled.parquet")
    (root / "tar").mkdir()
    samples = [(name, {"png": data}) for name, data in zip(names, pool, strict=True)]
    worlds.tar(root / "tar" / "0.tar", samples[:150])
    worlds.tar(root / "tar" / "1.tar", samples[150:])
    worlds.tar(
        root / "labeled.tar",
        [(f"l{r:03d}", {"png": d, "cls": str(labels[r]).encode()}) for r, d in enumerate(seen)],
    )
    (root / "images").mkdir()
    for name, data in zip(names, pool, strict=True):
        (root / "images" / f"{name}.png").write_bytes(data)
    for row, data in enumerate(seen):
        (root / "classes" / str(labels[row])).mkdir(parents=True, exist_ok=True)
        (root / "classes" / str(labels[row]) / f"{row:03d}.png").write_bytes(data)
    (root / "digits_net.py").write_text(NET)
    spec = importlib.util.spec_from_file_location("digits_net_made", root / "digits_net.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.manual_seed(0)
    model = module.net()
    save_file(model.state_dict(), root / "w.safetensors")
    torch.save(model.state_dict(), root / "w.pt")
    stored(root, model, seen, pool, labels)
    return root


def stored(root, model, seen, pool, labels):
    """The embeddings of that network, as arrays."""
    import askance
    from askance.pools.decode import ImageTensor

    for name, files in (("npy", pool), ("npy-labeled", seen)):
        inputs = torch.stack([ImageTensor(8)(data) for data in files])
        made = askance.embed(model, inputs)
        (root / name).mkdir()
        np.save(root / name / "logits.npy", made.logits.numpy())
        np.save(root / name / "features.npy", made.features.numpy())
    np.save(root / "npy-labeled" / "labels.npy", labels[:LABELED])
    assert isinstance(model, nn.Module)


@pytest.fixture
def select(digits, askance, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(digits)
    monkeypatch.chdir(digits)

    def call(*arguments, out="picks.jsonl", model=True, n=N, overwrite=True):
        where = tmp_path / out
        again = ["--overwrite"] if overwrite else []
        network = ["--model", "digits_net:net", "--image-size", 8] if model else []
        if model and "--weights" not in arguments:
            network += ["--weights", "w.safetensors"]
        code, stdout, err = askance("select", *arguments, *network, "--n", n, "-o", where, *again)
        rows = []
        if where.exists() and where.suffix == ".jsonl":
            rows = [json.loads(line) for line in where.read_text().splitlines()]
        return code, stdout, err, rows

    return call


FORMS = {
    "parquet": (
        "--pool", "parquet", "--labeled", "labeled.parquet", "--image", "img", "--id", "name",
        "--label", "y",
    ),
    "tar": ("--pool", "tar", "--labeled", "labeled.tar", "--weights", "w.pt"),
    "images": ("--pool", "images", "--labeled", "classes"),
    "npy": ("--pool", "npy", "--labeled", "npy-labeled"),
}  # fmt: skip


@pytest.mark.parametrize("rule", ["grad", "powergrad", "badge"])
def test_every_form_of_a_pool_gives_the_same_picks(select, rule):
    picked = {}
    for form, arguments in FORMS.items():
        code, out, err, rows = select(
            *arguments, "--strategy", rule, model=form != "npy", out=f"{form}.jsonl"
        )
        assert code == 0, err
        assert f"{rule}: {N} picked of {POOL} rows in" in out
        assert "engine local" in out
        assert f"{form}.jsonl" in out
        picked[form] = rows
    expected = picked["parquet"]
    assert [row["rank"] for row in expected] == list(range(1, N + 1))
    for rows in picked.values():
        assert [row["position"] for row in rows] == [row["position"] for row in expected]
        said, wanted = ([str(row["pseudo_label"]) for row in some] for some in (rows, expected))
        assert said == wanted  # the names of folders are texts
        np.testing.assert_allclose(
            [row["score"] for row in rows], [row["score"] for row in expected], rtol=1e-3
        )
    assert [row["id"] for row in picked["tar"]] == [row["id"] for row in expected]
    assert [row["id"] for row in picked["images"]] == [f"{row['id']}.png" for row in expected]
    first = expected[0]
    assert set(first) == {
        "id", "position", "rank", "score", "pseudo_label", "confidence", "why",
        "reason",
    }  # fmt: skip
    assert first["why"]["grad_norm"] > 0


def test_a_first_batch_without_a_labelled_set(select):
    picked = {}
    for form in ("npy", "parquet"):
        arguments = [each for each in FORMS[form] if each != "y" and each != "--label"]
        place = arguments.index("--labeled")
        del arguments[place : place + 2]
        code, out, err, rows = select(*arguments, model=form != "npy", out=f"{form}.jsonl")
        assert code == 0, err
        assert out.startswith("maxherding (")
        assert f"default for a first batch): {N} picked of {POOL} rows in" in out
        picked[form] = [row["position"] for row in rows]
    assert picked["npy"] == picked["parquet"]


def test_the_picks_as_a_table(select, tmp_path):
    arguments = (*FORMS["npy"], "--strategy", "grad")
    assert select(*arguments, model=False)[0] == 0
    rows = [json.loads(line) for line in (tmp_path / "picks.jsonl").read_text().splitlines()]
    assert select(*arguments, model=False, out="picks.csv")[0] == 0
    with (tmp_path / "picks.csv").open() as file:
        flat = list(csv.DictReader(file))
    assert [row["id"] for row in flat] == [row["id"] for row in rows]
    assert float(flat[0]["alignment"]) == rows[0]["why"]["alignment"]
    assert select(*arguments, model=False, out="picks.parquet")[0] == 0
    assert pq.read_table(tmp_path / "picks.parquet").to_pylist() == rows
    code, _, err, _ = select(*arguments, model=False, out="picks.xlsx")
    assert code == 2
    assert "unknown ending of the file of picks 'xlsx'" in err
    assert not (tmp_path / "picks.xlsx").exists()


def test_options_of_rule_and_command(select, tmp_path):
    arguments = (*FORMS["npy"], "--strategy", "powergrad")
    asked = (*arguments, "--option", "beta=0.5", "--seed", 3)
    code, out, err, rows = select(*asked, "--json", model=False)
    assert code == 0, err
    summary = json.loads(out)
    assert (summary["strategy"], summary["picked"], summary["rows"]) == ("powergrad", N, POOL)
    assert err == ""
    (tmp_path / "no.txt").write_text("\n".join(row["id"] for row in rows[:3]) + "\n")
    code, out, err, fewer = select(
        *arguments, "--option", "beta=0.5", "--seed", 3, "--exclude", tmp_path / "no.txt",
        model=False, out="b.jsonl",
    )  # fmt: skip
    assert "Excluded: 3 rows." in out
    assert [row["id"] for row in fewer[: N - 3]] == [row["id"] for row in rows[3:]]
    code, out, _, _ = select(*FORMS["npy"], "--strategy", "badge", "--shortlist", 100, model=False)
    assert "Picked from a shortlist, the 100 best rows by gradnorm." in out


def test_a_file_of_picks_is_replaced_only_where_that_is_said(select, tmp_path):
    question = (*FORMS["npy"], "--strategy", "entropy")
    assert select(*question, model=False, overwrite=False)[0] == 0
    before = (tmp_path / "picks.jsonl").read_text()
    code, out, err, _ = select(*question, "--seed", 1, model=False, n=2, overwrite=False)
    assert (code, out) == (2, "")
    assert "picks.jsonl exists; name another file, or replace it with --overwrite" in err
    assert (tmp_path / "picks.jsonl").read_text() == before
    assert len(select(*question, model=False, n=2)[3]) == 2


def test_a_network_is_found_in_the_current_folder(digits, tmp_path, monkeypatch):
    import subprocess
    import sys

    monkeypatch.chdir(digits)
    command = ["select", "--pool", "images", "--model", "digits_net:net", "--weights", "w.pt"]
    command += ["--image-size", "8", "--strategy", "entropy", "--n", "3", "-o", tmp_path / "p.csv"]
    script = Path(sys.executable).with_name("askance")
    start = [script] if script.exists() else [sys.executable, "-m", "askance"]
    done = subprocess.run([*start, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_limits_on_the_picks(select, tmp_path):
    pool = worlds.embedding(60)
    kind, price = ["cat", "dog", "owl"] * 20, np.arange(60) / 10
    folder = worlds.write(tmp_path / "p", pool, [40, 20], kind=kind, price=price)
    asked = (
        "--pool",
        folder,
        "--features",
        "features",
        "--logits",
        "logits",
        "--strategy",
        "entropy",
    )
    limits = ("--groups", "kind", "--at-most", "owl=1", "--at-most", "cat=2", "--at-least", "1")
    code, _, err, rows = select(*asked, *limits, model=False, n=9)
    assert code == 0, err
    names = [kind[row["position"]] for row in rows]
    assert {name: names.count(name) for name in names} == {"owl": 1, "cat": 2, "dog": 6}
    code, out, err, rows = select(*asked, "--costs", "price", "--budget", 10, model=False, n=9)
    assert sum(price[row["position"]] for row in rows) <= 10
    assert "of a budget of 10." in out
    code, out, err, _ = select(
        *asked, "--groups", "predicted", "--at-most", 1, "--json", model=False, n=2
    )
    assert json.loads(out)["notes"] == []
    for wrong, told in [
        (("--groups", "kind", "--at-most", "two"), "--at-most is N, or NAME=N"),
        (("--groups", "kind", "--at-least", "1", "--at-least", "cat=1"), "one N for every group"),
        (("--groups", "kind"), "groups alone limit nothing"),
        (("--budget", 1), "costs and budget belong together"),
    ]:
        code, out, err, _ = select(*asked, *wrong, model=False)
        assert (code, out) == (2, "")
        assert told in err


def test_what_is_skipped_is_said(select, digits, tmp_path):
    folder = tmp_path / "pool"
    folder.mkdir()
    for part in range(4):
        data = (digits / "parquet" / f"{part}.parquet").read_bytes()
        (folder / f"{part}.parquet").write_bytes(data if part != 2 else data[:-9])
    arguments = ("--pool", folder, "--image", "img", "--id", "name", "--strategy", "entropy")
    code, out, err, _ = select(*arguments)
    assert (code, out) == (2, "")
    assert "2.parquet: cut short, corrupt or not Parquet" in err
    code, out, err, rows = select(*arguments, "--on-error", "skip")
    assert code == 0, err
    assert "1 whole shards among them:" in out
    assert "2.parquet: cut short" in out
    assert not {row["id"] for row in rows} & {f"d{row:04d}" for row in range(200, 300)}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--pool", "npy", "--strategy", "nope"), "unknown strategy 'nope'"),
        (("--pool", "npy", "--strategy", "grad"), "compares the pool with the labelled set"),
        (("--pool", "nowhere"), "nowhere: no such file or folder"),
        (("--pool", "npy", "--weights", "w.pt"), "belong to a model"),
        (("--pool", "images", "--encoder", "minilm", "--model", "m:f"), "give --encoder alone"),
        (("--pool", "images", "--encoder", "minilm", "--head", "fc"), "give --encoder alone"),
        (("--pool", "images", "--encoder", "minlm"), "did you mean 'minilm'?"),
        (
            ("--pool", "images", "--encoder", "minilm", "--strategy", "grad"),
            "grad needs the answers of a model",
        ),
        (
            ("--pool", "images", "--labeled", "classes", "--encoder", "tests.encoders.toys:make"),
            "takes texts, the data are images",
        ),
        (("--pool", "npy", "--option", "beta", "--strategy", "powergrad"), "is NAME=VALUE"),
        (("--pool", "npy", "--address", "x", "--strategy", "entropy"), "say --engine ray"),
        (("--pool", "parquet", "--logits", "z", "--strategy", "entropy"), "no column 'z'"),
        (
            ("--pool", "parquet", "--image", "img", "--id", "name", "--no-id-check"),
            "for identifiers that differ by construction",
        ),
    ],
)
def test_wrong_questions(select, arguments, told):
    code, out, err, _ = select(*arguments, model=False)
    assert (code, out) == (2, "")
    assert told in err


def test_a_column_of_probabilities_is_no_column_of_logits(select, tmp_path):
    pool = worlds.embedding(50)
    pool.logits[:] = pool.logits.softmax(dim=1)
    folder = worlds.write(tmp_path / "likely", pool, [50])
    arguments = ("--pool", folder, "--logits", "logits", "--strategy", "entropy")
    code, out, err, _ = select(*arguments, model=False)
    assert (code, out) == (2, "")
    assert "the logits of part-000.parquet look like probabilities" in err
    assert "pass their logarithms" in err


def test_ray_says_what_to_install(select, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)  # `import ray` raises ImportError
    code, _, err, _ = select(*FORMS["npy"], "--strategy", "entropy", "--engine", "ray", model=False)
    assert code == 2
    assert 'pip install "askance[cluster]"' in err


def test_a_stopped_pass_of_another_question_is_exit_code_3(select, tmp_path):
    from askance.pools import Shard, ShardResult
    from askance.pools.resume import PassLog, resume_path
    from askance.selection.selection import ReadCounts

    with PassLog(resume_path(tmp_path / "picks.jsonl"), {"n": 1}) as begun:
        begun.add(Shard(0, "pool:0", "pool", 0, 10), ShardResult(None, ReadCounts()))
    code, _, err, _ = select(*FORMS["npy"], "--strategy", "entropy", model=False)
    assert code == 3
    assert "asked something else" in err
    assert select(*FORMS["npy"], "--strategy", "entropy", "--restart", model=False)[0] == 0


def test_a_refused_question_does_not_stand_in_the_way_of_the_next(select, tmp_path):
    """Limits on predicted classes are found to be impossible in the pass, when something is done."""
    asked = (*FORMS["npy"], "--strategy", "entropy", "--groups", "predicted")
    for impossible in ("1", "elephant=1"):
        code, _, err, _ = select(*asked, "--at-most", impossible, model=False, n=12)
        assert code == 2
        assert "at_most" in err
        assert not [path.name for path in tmp_path.iterdir() if "resume" in path.name]
    assert select(*asked, "--at-most", "4", model=False, n=12)[0] == 0


def test_a_refused_question_leaves_another_that_was_stopped(select, tmp_path):
    from askance.pools.resume import PassLog, resume_path

    with PassLog(resume_path(tmp_path / "picks.jsonl"), {"n": 1}):
        pass
    limits = ("--groups", "predicted", "--at-most", "1")
    assert select(*FORMS["npy"], "--strategy", "entropy", *limits, model=False, n=12)[0] == 2
    assert resume_path(tmp_path / "picks.jsonl").exists()


def test_columns_with_commas_or_one_by_one(select, tmp_path):
    draws = np.random.default_rng(0)
    columns = {name: draws.normal(size=40) for name in ("a", "b", "c")}
    pq.write_table(pa.table(columns), tmp_path / "pool.parquet")
    question = ("--pool", str(tmp_path / "pool.parquet"), "--strategy", "entropy")
    ways = (
        ("--logits", "a,b,c"),
        ("--logits", "a", "--logits", "b", "--logits", "c"),
        ("--logits", "a, b", "--logits", "c"),
    )
    results = [select(*question, *way, out=f"{i}.jsonl", model=False) for i, way in enumerate(ways)]
    assert [code for code, *_ in results] == [0, 0, 0]
    picks = [[row["id"] for row in rows] for *_, rows in results]
    assert picks[0] == picks[1] == picks[2]
    scores = special.entr(special.softmax(np.stack(list(columns.values()), axis=1), axis=1)).sum(1)
    assert [int(name.split(":")[-1]) for name in picks[0]] == np.argsort(-scores)[:N].tolist()


TEXTS = ["the cat sat", "a dog", "rates rise", "the bank", "a cat and a bank", "leaves"]


@pytest.fixture
def words(tmp_path, monkeypatch):
    """Texts to pick from and labelled ones, and the options that name them."""
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path / "cache"))
    pool = [f"{text} {row}" for row in range(10) for text in TEXTS]
    pq.write_table(pa.table({"words": pool}), tmp_path / "pool.parquet", row_group_size=7)
    pq.write_table(pa.table({"words": TEXTS, "y": [0, 0, 1, 1, 1, 2]}), tmp_path / "seen.parquet")
    where = ("--pool", tmp_path / "pool.parquet", "--labeled", tmp_path / "seen.parquet")
    return pool, (*where, "--text", "words", "--label", "y")


@pytest.mark.parametrize("rule", ["margin", "badge", "powergrad"])
def test_an_encoder_in_place_of_a_network(select, words, rule):
    import askance

    pool, arguments = words
    encoder = "tests.encoders.toys:make"
    asked = (*arguments, "--encoder", encoder, "--strategy", rule)
    code, out, err, rows = select(*asked, model=False)
    assert code == 0, err
    assert f"{rule}: {N} picked of 60 rows in" in out
    whole = askance.select(encoder, (TEXTS, [0, 0, 1, 1, 1, 2]), pool, N, strategy=rule)
    assert [row["position"] for row in rows] == whole.indices.tolist()
    assert rows[0]["id"] == f"pool.parquet:{whole.indices[0]}"
    said = whole.explain()
    assert [row["pseudo_label"] for row in rows] == [each.pseudo_label for each in said]


def test_cached_features_are_listed_and_deleted(select, askance, words):
    _, arguments = words
    assert askance("data", "features")[1].startswith("Cached: 0.0 MiB, in ")
    asked = (*arguments, "--encoder", "tests.encoders.toys:make", "--strategy", "entropy")
    assert select(*asked, model=False)[0] == 0
    code, out, err = askance("data", "features", "--json")
    assert (code, err) == (0, "")
    (kept,) = json.loads(out)
    assert kept["encoder"] == "tests.encoders.toys:letters"
    assert kept["items"] == 66
    assert kept["size"] > 0
    code, out, err = askance("data", "features", "--prune", "minilm")
    assert (code, out) == (2, "")
    assert "unknown encoder with cached features 'minilm'" in err
    assert "Deleted:" in askance("data", "features", "--prune", kept["digest"])[1]
    assert json.loads(askance("data", "features", "--json")[1]) == []
    assert select(*asked, model=False)[0] == 0
    assert "letters" in askance("data", "features")[1]
    assert len(json.loads(askance("data", "features", "--prune", "all", "--json")[1])) == 1


def test_progress_of_encoding_is_shown(select, words, monkeypatch):
    from askance.cli import progress

    _, arguments = words
    shown = []
    told = progress.Rate.encoding
    monkeypatch.setattr(
        progress.Rate, "encoding", lambda bar, *counts: (shown.append(counts), told(bar, *counts))
    )
    asked = (*arguments, "--encoder", "tests.encoders.toys:make", "--strategy", "entropy")
    assert select(*asked, model=False)[0] == 0
    assert shown[0] == (6, 66)
    assert shown[-1] == (66, 66)
