"""A drawing is drawn once, in one pass."""

import pytest

from askance.experiments.statistics.penalty import views
from askance.figures import style
from askance.figures.curves import learning_curves
from askance.figures.lazy import LazyFigure
from askance.figures.penalty import penalty
from tests.experiments.statistics.worlds import FIVE, experiment, noise

ONE = experiment(noise(("random", "grad"), rounds=3))


def test_vectors_are_drawn_once_and_figures_anew():
    drawn = []

    def draw(one):
        drawn.append(one)
        return learning_curves(one)

    made = LazyFigure(draw, ONE)
    assert drawn == []
    assert made.svg is made.svg
    assert made.svg == style.render(learning_curves(ONE), "svg")
    assert drawn == [ONE]
    assert made() is not made()


@pytest.mark.parametrize("format", style.FORMATS)
def test_one_pass_draws_what_savefig_draws_in_two(format, tmp_path):
    one = experiment(noise((*FIVE, "powergrad")))
    unsaid = {"Date": None} if format == "svg" else {}
    for made in (LazyFigure(learning_curves, one), LazyFigure(penalty, views([one]))):
        file = tmp_path / f"figure.{format}"
        style.styled(lambda made=made, file=file: made().savefig(file, metadata=unsaid))()
        drawn = file.read_bytes()
        assert style.render(made(), format) == (style.compact(drawn) if format == "svg" else drawn)
