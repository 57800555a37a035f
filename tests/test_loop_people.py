"""A loop that people answer: labels that exist, answers in part, several people, a file in between."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import askance
from askance.errors import InputError, LabelError, StoreError
from askance.oracles import Costly, Truth
from askance.strategies import Grad, PowerGrad
from tests.encoders.toys import text_encoder

N, D, C = 80, 4, 3
DRAWS = np.random.default_rng(0)
X = torch.from_numpy(DRAWS.normal(size=(N, D))).float()
Y = X[:, :C].argmax(1)
NAMES = ["dog", "cat", "ant"]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("ASKANCE_CACHE", str(tmp_path_factory.mktemp("cache")))


def network(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(D, 8), nn.ReLU(), nn.Linear(8, C))


def people(rows):
    return [int(Y[row]) for row in rows]


def test_people_pick_what_an_oracle_would():
    options = {"strategy": "badge", "batch": 6, "rounds": 3, "seed": 2}
    by_oracle = [
        run.ask(network()).indices.tolist() for run in askance.loop(X, Truth(Y), **options)
    ]
    by_people = []
    for run in askance.loop(X, **options):
        run.tell(run.waiting, people(run.waiting))
        assert torch.equal(run.labels, Y[run.rows])
        by_people.append(run.ask(network()).indices.tolist())
    assert by_people == by_oracle
    assert by_people[-1] == []
    assert len(run.rows) == 24


def test_answers_come_late_and_in_part():
    run = askance.loop(X, strategy="margin", batch=5, start=4)
    assert len(run.waiting) == 4
    first = list(run.waiting)
    run.tell(first[2:], people(first[2:]))
    assert run.waiting == first[:2]
    assert run.rows.tolist() == first[2:]
    second = run.ask(network()).indices.tolist()
    assert run.waiting == [*first[:2], *second]
    assert not set(second) & set(first)
    run.tell([first[0], second[3]], [None, 1])
    assert run.waiting == [first[1], *second[:3], second[4]]
    assert first[0] not in run.rows
    assert run.people.skipped == [first[0]]
    assert not set(run.ask(network())) & {*first, *second}


def test_people_may_disagree_and_change_their_minds():
    run = askance.loop(X, batch=2, first=[7, 9])
    run.tell([7, 9], [0, 1], by="ann")
    run.tell([7], [2], by="bob")
    assert run.disputed == [7]
    assert run.rows.tolist() == [9]
    run.tell([7], [2], by="cem")
    assert (run.disputed, dict(zip(run.rows.tolist(), run.labels.tolist(), strict=True))) == (
        [],
        {7: 2, 9: 1},
    )
    run.tell([7], [0], by="cem")
    assert run.labels[run.rows.tolist().index(7)] == 0
    assert run.people.rows()[0] == [7, "ann", 0]
    run.tell([30], [1], by="ann")  # which nobody asked for
    assert 30 in run.rows
    assert 30 in run.excluded


def test_a_loop_starts_from_labels_that_exist():
    known = {3: 0, 17: 2, 40: 1}
    inside = askance.loop(X, labeled=known, batch=5, strategy="grad")
    assert inside.waiting == []
    assert inside.rows.tolist() == [3, 17, 40]
    expected = askance.select(
        network(), (X[[3, 17, 40]], [0, 2, 1]), X, 5, strategy="grad", exclude=[3, 17, 40]
    )
    assert inside.ask(network()).indices.tolist() == expected.indices.tolist()
    extra = torch.randn(6, D), torch.arange(6) % C
    outside = askance.loop(X, Truth(Y), labeled=extra, batch=5, strategy="grad", rounds=2)
    sizes = []
    for run in outside:
        inputs, labels = run.labeled
        sizes.append(len(labels))
        assert torch.equal(inputs[:6], extra[0])
        assert torch.equal(inputs[6:], X[run.rows])
        assert torch.equal(labels, torch.cat([extra[1], Y[run.rows]]))
        run.ask(network())
    assert sizes == [6, 11, 16]
    more = askance.loop(X, Truth(Y), labeled=extra, start=3, batch=5)
    assert len(more.rows) == 3
    with pytest.raises(InputError, match="not in the pool are not in its Embedding"):
        more.ask(askance.embed(network(), X))


POOLS = {
    "tensor": lambda: X,
    "array": X.numpy,
    "dataset": lambda: TensorDataset(X),
    "pandas": lambda: pd.DataFrame(X.numpy(), columns=list("abcd"), index=range(N, 0, -1)),
    "polars": lambda: pl.DataFrame({name: X.numpy()[:, k] for k, name in enumerate("abcd")}),
}


@pytest.mark.parametrize("kind", POOLS)
def test_pools_of_any_kind_with_labels_from_outside(kind, tmp_path):
    pool = POOLS[kind]()
    some = pool if kind == "dataset" else pool[:8]
    picks = []
    expected = askance.loop(X, Truth(Y), labeled=(X[:8], Y[:8]), batch=5, strategy="margin")
    run = askance.loop(
        pool, batch=5, strategy="margin", labeled=None if kind == "dataset" else (some, Y[:8])
    )
    if kind == "dataset":
        run = askance.loop(pool, batch=5, strategy="margin", start=0)
    for step in range(2):
        mine = run.ask(network(step)).indices.tolist()
        run.tell(mine, people(mine))
        picks.append(mine)
        run.save(tmp_path / "run")
        labeled = None if kind == "dataset" else (some, Y[:8])
        run = askance.resume(tmp_path / "run", pool, labeled=labeled)
    assert picks == [expected.ask(network(step)).indices.tolist() for step in range(2)]
    assert len(run.labeled[1]) == 10 + (0 if kind == "dataset" else 8)


def test_texts_and_an_encoder_from_no_label_at_all():
    texts = [f"{'a' * (row % 7)} {'xyz' * (row % 3)} {row}" for row in range(30)]
    run = askance.loop(texts, batch=4, start=0, strategy="margin")
    first = run.ask(text_encoder())
    assert first.strategy.name == "maxherding"
    run.tell(first.indices, [["short", "long"][len(texts[row]) > 8] for row in first])
    assert set(run.labels) <= {"short", "long"}
    second = run.ask(text_encoder())
    assert second.strategy.name == "margin"
    assert {why.pseudo_label for why in second.explain()} <= {"short", "long"}
    assert run.labeled[0] == [texts[row] for row in run.rows]


def test_names_of_classes_become_numbers_where_their_order_is_known():
    run = askance.loop(X, batch=6, strategy="badge", classes=NAMES, labeled=(X[:2], ["ant", "dog"]))
    run.ask(network())
    run.tell(run.waiting, [NAMES[number] for number in people(run.waiting)])
    assert run.labeled[1].tolist() == [2, 0, *Y[run.rows].tolist()]
    assert {why.pseudo_label for why in run.ask(network()).explain()} <= set(NAMES)
    with pytest.raises(LabelError, match="the labels also have 'bee'"):
        run.tell(run.waiting[:1], ["bee"])


def test_people_are_asked_and_answer_by_ids():
    ids = [f"item-{row}" for row in range(N)]
    run = askance.loop(X, batch=3, ids=ids, first=[5, 6], strategy="margin")
    assert run.waiting == ["item-5", "item-6"]
    run.tell(["item-6"], [1])
    assert run.rows.tolist() == [6]
    picks = run.ask(network())
    assert picks.ids == tuple(ids[row] for row in picks)
    assert askance.loop(X, batch=3, ids=ids, labeled={"item-9": 2}).rows.tolist() == [9]
    with pytest.raises(InputError, match="no id 'stranger'"):
        run.tell(["stranger"], [1])
    with pytest.raises(InputError, match=r"80 different identifiers.*80, 1 of them different"):
        askance.loop(X, batch=3, ids=["a"] * N)


def test_any_number_in_any_round_until_the_pool_is_used_up():
    run = askance.loop(X, Truth(Y), batch=30, start=7, strategy="entropy")
    sizes = [len(run.ask(network(), n)) for n in (1, 12, None, None, None)]
    assert sizes == [1, 12, 30, 30, 0]
    assert run.finished
    seen = []
    for each in askance.loop(X[:20], Truth(Y[:20]), batch=8):
        seen.append(len(each.rows))
        each.ask(network())
    assert seen == [8, 16, 20]


def test_the_prices_of_an_oracle_are_spent_under_a_budget():
    prices = DRAWS.integers(1, 9, N).astype(float)
    run = askance.loop(X, Costly(Truth(Y), prices), batch=10, strategy="margin")
    before = run.spent
    picks = run.ask(network(), budget=20)
    assert run.spent - before == prices[picks.indices].sum() <= 20
    assert "of a budget of 20" in picks.notes[-1]


@pytest.mark.parametrize(
    "rule", ["margin", "badge", PowerGrad(beta=1.5, grad=Grad(bias=False)), None]
)
def test_a_saved_run_asks_what_it_would_have_asked(rule, tmp_path):
    options = {"batch": 5, "rounds": 4, "seed": 3, "exclude": [1, 2], "classes": NAMES}

    def step(run, number):
        run.log(accuracy=number / 10)
        asked = run.ask(network(number)).indices.tolist()
        run.tell(asked[:4], [NAMES[label] for label in people(asked[:4])], by="ann")
        run.tell(asked[3:4], ["dog"], by="bob")
        return asked

    whole = askance.loop(X, strategy=rule, **options)
    whole.tell(whole.waiting, people(whole.waiting))
    expected = [step(whole, number) for number in range(4)]
    run = askance.loop(X, strategy=rule, **options)
    run.tell(run.waiting, people(run.waiting))
    got = []
    for number in range(4):
        got.append(step(run, number))
        run.save(tmp_path / "run.json")
        run = askance.resume(tmp_path / "run.json", X)
    assert got == expected
    assert run.waiting == whole.waiting
    assert run.disputed == whole.disputed
    assert run.rows.tolist() == whole.rows.tolist()
    assert torch.equal(run.labels, whole.labels)
    assert [list(rows) for rows in run.picks] == [list(rows) for rows in whole.picks]
    assert run.history == whole.history
    assert run.finished
    assert run.strategy == whole.strategy


def test_an_oracle_goes_on_after_a_file(tmp_path):
    oracle = askance.oracles.Abstaining(Truth(Y), 0.3)
    whole = askance.loop(X, oracle, strategy="margin", batch=5, rounds=4)
    expected = [whole.ask(network(k)).indices.tolist() for k in range(4)]
    run = askance.loop(X, oracle, strategy="margin", batch=5, rounds=4)
    got = []
    for k in range(4):
        got.append(run.ask(network(k)).indices.tolist())
        run.save(tmp_path / "run")
        run = askance.resume(tmp_path / "run", X, oracle)
    assert got == expected
    assert run.waiting == []
    assert (run.spent, run.rows.tolist()) == (whole.spent, whole.rows.tolist())


def test_what_is_not_the_run_s_is_refused(tmp_path):
    path = tmp_path / "run"
    askance.loop(X, batch=3, ids=[f"i{row}" for row in range(N)], labeled=(X[:3], [0, 1, 2])).save(
        path
    )
    ids, labeled = [f"i{row}" for row in range(N)], (X[:3], [0, 1, 2])
    assert askance.resume(path, X.clone(), ids=ids, labeled=labeled).waiting == []
    with pytest.raises(StoreError, match=r"another pool.*of other content or in another order"):
        askance.resume(path, X.flip(0), ids=ids, labeled=labeled)
    with pytest.raises(StoreError, match="another pool: the run's had 80 rows, this one has 79"):
        askance.resume(path, X[1:], ids=ids, labeled=labeled)
    with pytest.raises(StoreError, match="another ids"):
        askance.resume(path, X, ids=ids[::-1], labeled=labeled)
    with pytest.raises(InputError, match="was made with labeled=; give it again"):
        askance.resume(path, X, ids=ids)
    (tmp_path / "no").write_text('{"kind": "poem"}')
    with pytest.raises(StoreError, match="not a saved run; it is written by"):
        askance.resume(tmp_path / "no", X)
    (tmp_path / "cut").write_text(path.read_text()[:50])
    with pytest.raises(StoreError, match="cut short"):
        askance.resume(tmp_path / "cut", X)
    newer = json.loads(path.read_text()) | {"version": 9}
    (tmp_path / "newer").write_text(json.dumps(newer))
    with pytest.raises(StoreError, match="of version 9, this askance reads 1"):
        askance.resume(tmp_path / "newer", X)
    with pytest.raises(StoreError, match="cannot be read"):
        askance.resume(tmp_path / "nowhere", X)
    odd = askance.loop(X, batch=3, strategy=Grad(loss=lambda logits, labels: logits.sum()))
    with pytest.raises(InputError, match=r"grad\(loss=.*cannot be saved"):
        odd.save(path)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.5, 1], "a label is a whole number, the name of a class, or None"),
        ([0], "2 rows need as many labels, got 1"),
        (["a", 1], "all numbers or all names"),
        ([0, np.nan], r"label at index 1 is missing \(nan\): give None where nobody can tell"),
        (np.array([0, np.nan]), r"label at index 1 is missing \(nan\)"),
        (torch.tensor([0, np.nan]), r"label at index 1 is missing \(nan\)"),
        (pd.Series(["a", None], dtype="str"), r"label at index 1 is missing \(nan\)"),
        (["a", pd.NA], r"label at index 1 is missing \(<NA>\)"),
        (["a", pd.NaT], r"label at index 1 is missing \(NaT\)"),
        (np.array(["NaT", "NaT"], "M8[s]"), r"label at index 0 is missing \(NaT\)"),
        (["a", ""], r"label at index 1 is missing \(''\)"),
    ],
)
def test_labels_that_are_none(labels, message):
    run = askance.loop(X, batch=2)
    with pytest.raises(LabelError, match=message):
        run.tell(run.waiting, labels)
    assert len(run.waiting) == 2
    assert run.people.rows() == []


@pytest.mark.parametrize("missing", [None, np.nan, ""])
def test_labels_that_exist_are_there(missing):
    with pytest.raises(LabelError, match="labelled row 1 has no label"):
        askance.loop(X, batch=2, labeled=(X[:3], ["dog", missing, "cat"]), classes=NAMES)
    for classes in (None, NAMES):
        held_out, rule = (X[:3], ["dog", missing, "cat"]), askance.stopping.TargetAccuracy(0.9)
        with pytest.raises(LabelError, match="labelled row 1 has no label"):
            askance.loop(X, batch=2, stop=rule, held_out=held_out, classes=classes)
    if missing is not None:
        with pytest.raises(LabelError, match="label at index 1 is missing"):
            askance.loop(X, batch=2, labeled={0: "dog", 1: missing})


@pytest.mark.parametrize(
    "form",
    [list, np.array, pd.Index, pd.Series, pl.Series],
    ids=["list", "array", "index", "series", "polars"],
)
@pytest.mark.parametrize("named", [True, False], ids=["texts", "numbers"])
def test_ids_of_any_form_go_through_a_file(form, named, tmp_path):
    plain = [f"i{row}" if named else row + 100 for row in range(N)]
    run = askance.loop(X, batch=2, ids=form(plain), first=[5, 6], strategy="margin")
    assert run.waiting == [plain[5], plain[6]]
    run.save(tmp_path / "run")
    for given in (form(plain), plain):
        again = askance.resume(tmp_path / "run", X, ids=given)
        assert again.waiting == run.waiting
    with pytest.raises(StoreError, match="another ids"):
        askance.resume(tmp_path / "run", X, ids=form(plain[::-1]))
    again.tell(form(plain[5:7]), form([0, 1]))
    assert again.labeled[1].tolist() == [0, 1]


@pytest.mark.parametrize("form", [list, np.array, pd.Series])
def test_the_oracle_and_what_is_held_out_may_have_names(form):
    rule = askance.stopping.TargetAccuracy(0.99)
    names = form([NAMES[number] for number in Y])
    seen = []
    for y, held in ((Truth(Y), Y), (Truth(names, classes=NAMES), names)):
        run = askance.loop(
            X, y, batch=4, rounds=2, strategy="margin", classes=NAMES, stop=rule, held_out=(X, held)
        )
        rounds = [each.ask(network(each.round)).indices.tolist() for each in run]
        seen.append((rounds, run.labels.tolist(), [c.accuracy for c in run.checkpoints]))
    assert seen[0] == seen[1]
    with pytest.raises(LabelError, match="the labels also have 'bee'"):
        Truth(["dog", "bee"], classes=NAMES)
    with pytest.raises(LabelError, match=r"classes=\[…\]"):
        Truth(names)


def test_rows_that_cannot_be_answered():
    run = askance.loop(X, batch=2, exclude=[4], first=[0, 1])
    for rows, message in (
        ([4], "rows .* are excluded"),
        ([N], "between 0 and 79"),
        (["a"], "ids= gives rows names"),
        ([0, 0], "come twice"),
    ):
        with pytest.raises(InputError, match=message):
            run.tell(rows, [0] * len(rows))
    for rows in ([0, 1], {0: "cat"}, pd.DataFrame({"id": [0]}), pd.Series({0: "cat"})):
        kind = type(rows).__name__
        with pytest.raises(
            InputError, match=rf"got a {kind}, and the run has no oracle.*answers.val"
        ):
            run.tell(rows)
    with pytest.raises(
        InputError, match=r"asks the run's oracle for a list of rows; got a dict\. Peo"
    ):
        askance.loop(X, Truth(Y), batch=2).tell({0: 1, 1: 2})
    run.tell([0], ["cat"])
    with pytest.raises(LabelError, match="all numbers or all names"):
        run.tell([1], [3])
    assert run.waiting == [1]


def test_a_notebook_shows_the_curve():
    run = askance.loop(X, Truth(Y), batch=5, rounds=2, strategy="margin")
    assert "Log a measurement" in run._repr_html_()
    for each in run:
        each.log(accuracy=0.5 + each.round / 10)
        each.ask(network())
    assert repr(run) == "Run(margin: round 2, 15 labels, 0 waiting)"
    assert [labels for labels, _ in run.history] == [5, 10, 15]
    shown = run._repr_html_()
    assert shown.startswith("<p><b>Run(margin: round 2")
    assert shown.count("<svg") == 1
    assert "accuracy" in shown
