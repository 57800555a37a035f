"""A drawing is drawn once, and is the same bytes wherever that happens."""

import multiprocessing
from concurrent.futures import Executor, Future, ProcessPoolExecutor

import pytest

from askance.bench.stats.penalty import views
from askance.bench.stats.table import PAPER
from askance.figures import drawing, style
from askance.figures.curves import learning_curves
from askance.figures.drawing import Drawing, meanwhile
from askance.figures.penalty import penalty
from tests.stats.worlds import experiment, noise

ONE = experiment(noise(("random", "grad"), rounds=3))


class Busy(Executor):
    """A pool that never comes to what it is given, or did it long ago."""

    def __init__(self, done=None):
        self.done = done
        self.futures = []

    def submit(self, work, *args):
        future = Future()
        if self.done is not None:
            future.set_running_or_notify_cancel()
            future.set_result(self.done)
        self.futures.append(future)
        return future


def test_vectors_are_drawn_once_and_figures_anew():
    drawn = []

    def draw(one):
        drawn.append(one)
        return learning_curves(one)

    made = Drawing(draw, ONE)
    assert drawn == []
    assert made.svg is made.svg
    assert made.svg == style.render(learning_curves(ONE), "svg")
    assert drawn == [ONE]
    assert made() is not made()


def test_what_a_pool_has_drawn_is_taken_and_what_it_has_not_begun_is_drawn_here():
    made = Drawing(learning_curves, ONE)
    made.start(Busy(done=b"drawn there"))
    assert made.svg == b"drawn there"
    pool, made = Busy(), Drawing(learning_curves, ONE)
    made.start(pool)
    assert made.svg == style.render(learning_curves(ONE), "svg")
    assert pool.futures[0].cancelled()


def test_another_process_draws_the_same_bytes(monkeypatch):
    monkeypatch.setattr(drawing, "MANY", 2)
    drawings = [Drawing(learning_curves, ONE), Drawing(penalty, views([ONE]))]
    with meanwhile(drawings):
        theirs = [made._elsewhere.result(60) for made in drawings]
        assert [made.svg for made in drawings] == theirs
    assert theirs == [style.render(made(), "svg") for made in drawings]


def test_a_process_that_was_killed_is_done_without():
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    made = Drawing(learning_curves, ONE)
    made.start(pool)
    for process in pool._processes.values():
        process.kill()
    assert made.svg == style.render(learning_curves(ONE), "svg")
    pool.shutdown()


def test_no_process_is_started_for_a_few(monkeypatch):
    monkeypatch.setattr(drawing, "ProcessPoolExecutor", None)
    few = [Drawing(learning_curves, ONE)] * (drawing.MANY - 1)
    with meanwhile(few):
        assert few[0]._elsewhere is None
    with pytest.raises(TypeError), meanwhile([*few, few[0]]):  # one more, and there would be one
        pass


@pytest.mark.parametrize("format", style.FORMATS)
def test_one_pass_draws_what_savefig_draws_in_two(format, tmp_path):
    one = experiment(noise((*PAPER, "powergrad")))
    unsaid = {"Date": None} if format == "svg" else {}
    for made in (Drawing(learning_curves, one), Drawing(penalty, views([one]))):
        file = tmp_path / f"figure.{format}"
        style.styled(lambda made=made, file=file: made().savefig(file, metadata=unsaid))()
        assert style.render(made(), format) == file.read_bytes()
