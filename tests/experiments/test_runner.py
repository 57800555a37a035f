"""An experiment from its spec to its store: what every run shares, and what is asked of whom."""

import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from askance import data
from askance.errors import AskanceError, InputError, NonFiniteError, SpecError
from askance.experiments.packing import FILE
from askance.experiments.records import STAGES, SweepResult
from askance.experiments.rounds import LoadedExperiment, RunState, Trial, swept_rate
from askance.experiments.runner import RunObserver, run
from askance.experiments.store import ResultStore
from askance.loop import first_batch
from askance.oracles import Truth
from askance.seeding import Draws
from tests.experiments.tiny import contents, play
from tests.rules import ONE_MODEL

CPU = torch.device("cpu")
RULES = ONE_MODEL


class Counting(RunObserver):
    """What it was told."""

    def __init__(self):
        self.points, self.epochs, self.stages = 0, [], []
        self.swept_rates, self.records, self.total, self.done = [], [], None, None

    def began(self, spec, dataset, how, total, done):
        self.total, self.done, self.how = total, done, how

    def stage(self, stage):
        self.stages.append(stage)

    def epoch(self, epoch, points):
        self.epochs.append(epoch)
        self.points += points

    def swept(self, rate, seed, accuracy):
        self.swept_rates.append((rate, seed))

    def stored(self, record):
        self.records.append(record)


# What is asked of whom


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    rules=st.lists(st.sampled_from(RULES), min_size=2, max_size=3, unique=True),
    batch=st.integers(1, 15),
    rounds=st.integers(0, 3),
    seeds=st.integers(1, 2),
)
def test_no_held_out_point_is_queried_and_no_pool_point_twice(
    tiny, tmp_path_factory, rules, batch, rounds, seeds
):
    spec = tiny(
        strategies=str(rules).replace("'", '"'),
        seeds=seeds,
        batch=batch,
        rounds=rounds,
        epochs=1,
        learning_rates="[0.05]",
    )
    folder = tmp_path_factory.mktemp("property")
    play(spec, folder)
    digits = data.load("digits")
    held_out = set(digits.val.index.tolist()) | set(digits.test.index.tolist())
    with ResultStore.read(folder) as store:
        assert set(store.runs) == {(rule, seed) for rule in rules for seed in range(seeds)}
        for rule, seed in store.runs:
            history = store.history(rule, seed)
            assert [one.round for one in history] == list(range(rounds + 1))
            assert [one.labels for one in history] == [batch * (t + 1) for t in range(rounds + 1)]
            assert [len(one.picks) for one in history] == [batch] * rounds + [0]
            asked = np.concatenate([store.initial(rule, seed), *(one.picks for one in history)])
            assert len(np.unique(asked)) == len(asked) == batch * (rounds + 1)
            assert asked.min() >= 0
            assert asked.max() < digits.pool_size
            source = digits.train.index[asked]
            assert len(np.unique(source)) == len(source)
            assert not held_out & set(source.tolist())
        for seed in range(seeds):
            starts = {tuple(store.initial(rule, seed).tolist()) for rule in rules}
            firsts = [store.history(rule, seed)[0] for rule in rules]
            assert len(starts) == 1
            assert len({(one.accuracy, one.loss, one.learning_rate) for one in firsts}) == 1


def test_the_splits_of_a_source_are_disjoint():
    digits = data.load("digits")
    splits = [set(getattr(digits, name).index.tolist()) for name in ("train", "val", "test")]
    assert sum(map(len, splits)) == len(set.union(*splits)) == 1797


def test_the_oracle_is_asked_for_the_stored_rows_and_no_others(tiny, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        Truth,
        "answer",
        lambda self, rows, answer=Truth.answer: (asked.append(rows.copy()), answer(self, rows))[1],
    )
    play(tiny(strategies='["margin"]', seeds=1), tmp_path / "out")
    with ResultStore.read(tmp_path / "out") as store:
        picks = [one.picks for one in store.history("margin", 0)]
        known = np.concatenate([store.initial("margin", 0), *picks])
    assert set(np.concatenate(asked).tolist()) == set(known.tolist())


def test_a_runs_picks_are_read_once_to_go_on(tiny, tmp_path, monkeypatch):
    """To count rounds needs no picks, and to unpack them takes most of the time of reading a store."""
    spec = tiny(strategies='["random", "margin"]', seeds=2, rounds=1)
    play(spec, tmp_path)
    read = []
    monkeypatch.setattr(
        ResultStore,
        "history",
        lambda self, *run, history=ResultStore.history: (read.append(run), history(self, *run))[1],
    )
    play(spec, tmp_path)
    assert sorted(read) == [(rule, seed) for rule in ("margin", "random") for seed in (0, 1)]


@pytest.mark.parametrize("round", [0, 1])
def test_every_rule_of_a_seed_starts_from_the_same_weights(tiny, round):
    """The weights before the first step, in any round: of (seed, round), never of the rule."""
    experiment = LoadedExperiment.of(tiny(), CPU, "one")

    def job(rule, seed, place):
        unasked = np.setdiff1d(np.arange(1295), experiment.run(RunState(rule, seed)).asked)
        picks = (unasked[10 * place : 10 * place + 10],)[:round]
        return experiment.job(experiment.run(RunState(rule, seed, picks)), 0.1)

    jobs = [
        job(rule, seed, place) for seed in (0, 1) for place, rule in enumerate(tiny().strategies)
    ]
    weights = [experiment.build(job.draws).state_dict() for job in jobs]
    for other in weights[1:3]:
        assert all(torch.equal(other[name], value) for name, value in weights[0].items())
    assert not torch.equal(weights[0]["1.weight"], weights[3]["1.weight"])
    again = experiment.build(Draws(0, round + 1)).state_dict()
    assert not torch.equal(weights[0]["1.weight"], again["1.weight"])


def test_the_sweep_trains_on_the_pool_and_is_judged_on_validation(tiny, monkeypatch):
    """Test points may not choose a learning rate: with their labels scrambled it is the same."""
    experiment = LoadedExperiment.of(tiny(), CPU, "one")
    first = experiment.try_rates([Trial(0.1, 0), Trial(0.1, 1)])
    experiment._held_out["test"] = (torch.zeros(3, 64), torch.zeros(3, dtype=torch.int64))
    assert [one.accuracy for one in experiment.try_rates([Trial(0.1, 0), Trial(0.1, 1)])] == [
        one.accuracy for one in first
    ]
    steps = len(experiment.dataset.val)
    assert all(
        (one.accuracy * steps) == pytest.approx(round(one.accuracy * steps)) for one in first
    )


def test_a_rate_that_one_seed_does_not_train_with_is_no_candidate():
    def result(rate, seed, accuracy, trained):
        return SweepResult(rate, seed, accuracy, 1.0, trained=trained)

    some = [result(0.1, 0, 0.9, True), result(0.1, 1, 0.9, False)]
    some += [result(0.05, 0, 0.6, True), result(0.05, 1, 0.6, True)]
    assert swept_rate(some, [0.05, 0.1]) == 0.05
    older = [replace(one, trained=None) for one in some]  # it was not recorded
    assert swept_rate(older, [0.05, 0.1]) == 0.1


def test_the_sweep_says_whether_a_first_labelled_set_is_learned(tiny):
    """The final budget is learned with a rate that leaves the first ten points unlearned."""
    spec = tiny(rounds=30, epochs=8, learning_rates="[0.02, 0.1]")
    experiment = LoadedExperiment.of(spec, CPU, "one")
    slow, fast = experiment.try_rates([Trial(1e-7, 0), Trial(0.1, 0)])
    assert (slow.trained, fast.trained) == (False, True)


# What a store holds at the end


def test_time_and_peak_memory_of_every_stage(tiny, tmp_path):
    play(tiny(), tmp_path / "out")
    with ResultStore.read(tmp_path / "out") as store:
        for one in store.rounds():
            last = one.round == 2
            asked = set() if last else set(STAGES[2:])
            assert set(one.seconds) == {"train", "evaluate"} | asked
            assert set(one.peak_mb) == set(one.seconds) - {"labeled", "score"}
            assert all(value >= 0 for value in one.seconds.values())
            assert one.seconds["train"] > 0
            assert all(20 < mb < 100_000 for mb in one.peak_mb.values())
        assert all(one.seconds > 0 and one.peak_mb > 20 for one in store.sweep_results())
        (machine,) = store.machines()
        assert (machine["device"], machine["engine"]) == ("cpu", "one")
        assert (machine["precision"], machine["threads"]) == ("float32", 1)
        assert store.info["fingerprint"] == data.load("digits").fingerprint


def test_what_a_watch_is_told_adds_up(tiny, tmp_path):
    watch = Counting()
    play(tiny(), tmp_path / "out", observers=[watch])
    rounds = [10 * (t + 1) * 2 for t in range(3)]  # points × epochs
    sweep = (10 + 30) * 2 * 4
    assert (watch.total, watch.done) == (6 * sum(rounds) + sweep, 0)
    assert watch.points == watch.total
    assert set(watch.epochs) == {1, 2}
    assert watch.stages == ["sweep", "round 0", "round 1", "round 2"]
    assert sorted(watch.swept_rates) == [(0.05, 0), (0.05, 1), (0.1, 0), (0.1, 1)]
    assert len(watch.records) == 18
    again = Counting()
    play(tiny(), tmp_path / "out", observers=[again])
    assert (again.total, again.done) == (watch.total, watch.total)
    assert (again.points, again.stages, again.records) == (0, [], [])


def test_a_finished_experiment_is_left_as_it_is(tiny, tmp_path):
    play(tiny(), tmp_path / "out")
    before = (tmp_path / "out" / FILE).read_bytes()
    start = time.perf_counter()
    play(tiny(), tmp_path / "out")
    assert time.perf_counter() - start < 5
    assert (tmp_path / "out" / FILE).read_bytes() == before


class Stopping(RunObserver):
    """Ends the process, as far as the runner can tell, after so many rounds or trials."""

    def __init__(self, after):
        self.left = after

    def stored(self, record):
        self._tick()

    def swept(self, rate, seed, accuracy):
        self._tick()

    def _tick(self):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_stopped_after_any_commit_it_goes_on_as_if_it_had_not_been(tiny, tmp_path):
    spec = tiny(strategies='["badge", "powergrad"]', rounds=2)
    play(spec, tmp_path / "whole")
    for _ in range(4 + 12):  # of the sweep, and of the runs
        with pytest.raises(KeyboardInterrupt):
            play(spec, tmp_path / "cut", observers=[Stopping(1)])
    play(spec, tmp_path / "cut", observers=[Stopping(1)])
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


# Engines and precisions


def test_stacked_picks_the_same_as_one_in_float64(tiny, tmp_path):
    spec = tiny(precision='"float64"')
    play(spec, tmp_path / "one")
    play(spec, tmp_path / "stacked", training="stacked")
    one, initial, sweep, rate = contents(tmp_path / "one")
    stacked, other_initial, other_sweep, other_rate = contents(tmp_path / "stacked")
    assert (initial, sweep, rate) == (other_initial, other_sweep, other_rate)
    for key, (labels, accuracy, loss, _, picks, _) in one.items():
        assert stacked[key][0] == labels
        assert stacked[key][1] == accuracy
        assert float(stacked[key][2]) == pytest.approx(float(loss), rel=1e-9)
        assert stacked[key][4] == picks
    with ResultStore.read(tmp_path / "stacked") as store:
        assert store.machines()[0]["engine"] == "stacked"


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_other_precisions_run_on_a_cpu(tiny, tmp_path, precision):
    play(tiny(precision=f'"{precision}"', seeds=1), tmp_path / "out")
    with ResultStore.read(tmp_path / "out") as store:
        assert len(store.rounds()) == 9
        real = "float32" if precision == "tf32" else precision
        assert store.machines()[0]["precision"] == real


def test_a_run_that_diverges_is_named(tiny, tmp_path):
    spec = tiny(strategies='["margin"]', seeds=1, learning_rates="[1e30]")
    told = r"margin, seed 0, round 0: with learning rate 1e\+30, logits must be finite"
    with pytest.raises(NonFiniteError, match=told):
        play(spec, tmp_path / "out")


def test_auto_trains_a_network_of_ones_own_one_by_one(tiny, tmp_path):
    """It may draw in its forward pass; only somebody who asks for a stack gets one."""
    watch = Counting()
    play(tiny(rounds=0, seeds=1), tmp_path / "out", observers=[watch])
    assert watch.how == "1 at a time"


# Oracles


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("noisy", "rate = 0.4"),
        ("abstaining", "rate = 0.4\nseed = 1"),
        ("costly", "low = 1\nhigh = 5"),
    ],
)
def test_oracles_of_a_spec_run_and_resume(tiny, tmp_path, kind, options):
    tail = f'[oracle]\nkind = "{kind}"\n{options}\n'
    spec, plain = tiny(tail), tiny()
    play(spec, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        play(spec, tmp_path / "out", observers=[Stopping(12)])
    play(spec, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    play(plain, tmp_path / "plain")
    answered, truth = contents(tmp_path / "out")[0], contents(tmp_path / "plain")[0]
    labels = [values[0] for values in answered.values()]
    most = [values[0] for values in truth.values()]
    if kind == "abstaining":
        assert all(few < many for few, many in zip(labels, most, strict=True))
    else:
        assert labels == most
    assert (answered == truth) == (kind == "costly")


def test_an_oracle_that_never_answers_is_said_to_be_so(tiny, tmp_path):
    with pytest.raises(AskanceError, match="at least one labelled row"):
        play(tiny('[oracle]\nkind = "abstaining"\nrate = 1\n'), tmp_path / "out")


# What cannot be


def test_a_pool_that_is_too_small_is_refused_before_there_is_a_store(tiny, tmp_path):
    with pytest.raises(SpecError, match=r"label 1,300 points, the pool of digits has 1,295; lower"):
        play(tiny(rounds=129), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("device", ["gpu", "meta", "cuda:99", "xyz:0"])
def test_a_device_that_is_not_there(tiny, tmp_path, device):
    with pytest.raises(InputError, match=f"the device '{device}' cannot be used here: [^\n]+$"):
        run(tiny(), tmp_path / "out", device=device)
    assert not (tmp_path / "out").exists()


def test_wrong_workers_and_engines(tiny, tmp_path):
    with pytest.raises(InputError, match="workers must be at least 1, got 0"):
        play(tiny(), tmp_path / "out", workers=0)
    with pytest.raises(
        InputError, match=r"training must be one of auto, one, .*stacked.*, got 'tow'"
    ):
        play(tiny(), tmp_path / "out", training="tow")


def test_a_first_batch_that_covers_is_that_of_the_loop(tiny, tmp_path):
    spec = tiny(rounds='1\nfirst = "maxherding"', strategies='["random", "badge"]')
    play(spec, tmp_path / "store")
    inputs = data.load("digits").train.inputs
    expected = first_batch(inputs, len(inputs), 10, "maxherding", 0)
    experiment = LoadedExperiment.of(spec, CPU, "one")
    for rule in spec.strategies:
        for seed in range(2):
            run = experiment.run(RunState(rule, seed))
            assert run.rows.tolist() == expected.tolist()
    # A worker is told it, and does not pick it again.
    known = np.arange(10)
    assert experiment.run(RunState(spec.strategies[0], 7, first=known)).rows.tolist() == [
        *range(10)
    ]
    assert 7 not in experiment._first_batches


def test_a_seed_asks_of_its_own_part_of_the_pool_alone(tiny, tmp_path):
    """Where the first batch and the rule draw nothing: whole pools give one run, parts one a seed."""
    rules = ["margin", "maxherding"]
    changes = {"strategies": str(rules).replace("'", '"'), "rounds": '2\nfirst = "maxherding"'}
    play(tiny(**changes), tmp_path / "whole")
    spec = replace(tiny(**changes), pool=0.3)
    play(spec, tmp_path / "part")
    with ResultStore.read(tmp_path / "part") as store:
        asked = {
            (rule, seed): np.concatenate(
                [store.initial(rule, seed), *(one.picks for one in store.history(rule, seed))]
            )
            for rule in rules
            for seed in range(2)
        }
    with ResultStore.read(tmp_path / "whole") as store:
        assert store.initial("margin", 0).tolist() == store.initial("margin", 1).tolist()
    experiment = LoadedExperiment.of(spec, CPU, "one")
    size = experiment.dataset.pool_size
    unseen = [experiment.unseen(seed) for seed in range(2)]
    for (_, seed), rows in asked.items():
        assert len(rows) == len(set(rows.tolist())) == 30
        assert not np.isin(rows, unseen[seed]).any()
        assert len(unseen[seed]) == size - round(0.3 * size)
    assert asked["margin", 0][:10].tolist() == asked["maxherding", 0][:10].tolist()
    assert asked["margin", 0].tolist() != asked["margin", 1].tolist()
    # Two parts have what chance gives them in common: no draw of one decides the other.
    both = size - len(np.union1d(*unseen))
    assert both == pytest.approx(0.09 * size, abs=5 * (size * 0.09 * 0.91) ** 0.5)


def test_a_part_of_the_pool_that_is_too_small_is_refused(tiny):
    with pytest.raises(SpecError, match=r"label 30 points, the pool .* of which a seed sees 1%"):
        LoadedExperiment.of(replace(tiny(), pool=0.01), CPU, "one")
