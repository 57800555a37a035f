"""Figures: one look a rule, drawn whatever the table lacks, the same bytes every time."""

import io
import re
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from PIL import Image

import askance
from askance.experiments.statistics.curves import curves
from askance.experiments.statistics.penalty import penalty as penalty_of
from askance.experiments.statistics.penalty import views
from askance.experiments.statistics.ranks import profile, ranks
from askance.experiments.statistics.resample import Interval
from askance.figures import style
from askance.figures.across import critical_difference, profiles
from askance.figures.curves import curve_grid, learning_curves
from askance.figures.penalty import penalty
from askance.figures.thirds import gains_by_third
from askance.figures.timing import timing
from tests.experiments.statistics.worlds import FIVE, experiment, noise


def test_every_rule_has_a_look_of_its_own():
    assert set(askance.strategies.names()) <= set(style.RULE_STYLES)
    looks = [(look.colour, look.marker) for look in style.RULE_STYLES.values()]
    assert len(set(looks)) == len(looks)
    firsts = [style.RULE_STYLES[rule].colour for rule in (*FIVE, "powergrad", "grad-spread")]
    assert len(set(firsts)) == 7  # those seen together most differ in colour alone


def test_colours_are_okabe_and_itos_and_a_grey():
    okabe_ito = {"#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00",
                 "#CC79A7"}  # fmt: skip
    used = {look.colour for look in style.RULE_STYLES.values()} | set(style._OTHERS)
    assert used - okabe_ito == {style.GREY}


def test_a_rule_of_someone_elses_always_looks_the_same():
    assert style.rule_style("theirs") == style.rule_style("theirs")
    assert style.rule_style("theirs") != style.rule_style("powergrad(beta=1.0)")
    assert style.rule_style("theirs").dash == "-."


def test_save_writes_vectors_and_pixels_and_the_same_again(tmp_path):
    one = experiment(noise(FIVE))
    first = style.save(learning_curves(one), tmp_path / "deep" / "curves")
    assert [path.name for path in first] == ["curves.svg", "curves.png"]
    again = style.save(learning_curves(one), tmp_path / "again.svg")
    assert [path.name for path in again] == ["again.svg", "again.png"]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in again]
    assert b"<svg" in first[0].read_bytes()
    with Image.open(first[1]) as image:
        assert image.width > 800


def test_an_svg_refers_to_nothing_outside():
    svg = style.render(learning_curves(experiment(noise(FIVE))), "svg").decode()
    links = re.findall(r'(?:href|src)="([^"]*)"', svg)
    assert all(link.startswith("#") for link in links)


def test_a_users_settings_change_nothing_and_are_left_alone():
    one = experiment(noise(("random", "grad"), rounds=3))
    plain = style.render(learning_curves(one), "svg")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "lines.linewidth": 9}):
        assert style.render(learning_curves(one), "svg") == plain
        assert matplotlib.rcParams["font.size"] == 30


def shape(figure):
    return Image.open(io.BytesIO(style.render(figure, "png"))).size


def test_curves_show_mean_and_one_std():
    tables = noise(("random", "grad"))
    axes = learning_curves(experiment(tables), "a title").axes[0]
    lines = dict(zip(("random", "grad"), axes.lines, strict=True))
    np.testing.assert_allclose(lines["grad"].get_ydata(), tables["grad"].mean(axis=0))
    np.testing.assert_allclose(lines["grad"].get_xdata(), [10, 20, 30, 40])
    assert lines["grad"].get_color() == style.rule_style("grad").colour
    band = axes.collections[1].get_paths()[0].vertices
    top = (tables["grad"].mean(axis=0) + tables["grad"].std(axis=0, ddof=1)).max()
    assert band[:, 1].max() == pytest.approx(top)
    assert axes.get_title(loc="left") == "a title"


@pytest.mark.parametrize("height", [0.002, 0.03, 0.1, 0.2, 0.25, 0.5, 0.9])
def test_an_axis_says_where_its_ticks_are(height):
    rising = 0.05 + height * np.linspace(0, 1, 4) * np.ones((2, 1))
    figure = learning_curves(experiment({"random": rising}))
    figure.draw_without_rendering()
    axis = figure.axes[0].yaxis
    said = [float(label.get_text().rstrip("%")) / 100 for label in axis.get_ticklabels()]
    np.testing.assert_allclose(said, axis.get_ticklocs(), atol=1e-9)


def test_curves_of_one_seed_one_round_or_holes():
    tables = noise(("random", "grad"), seeds=3, rounds=5)
    tables["grad"][1:, 3:] = np.nan
    for one in (
        experiment(tables),
        experiment(noise(("random",), seeds=1, rounds=1)),
        experiment(noise(("random", "grad"), seeds=1)),
    ):
        assert shape(learning_curves(one))[0] > 0


def test_a_grid_has_a_panel_an_experiment_and_one_legend():
    experiments = [experiment(noise(FIVE), name=f"e{i}") for i in range(3)]
    figure = curve_grid(experiments)
    assert sum(axes.get_visible() for axes in figure.axes) == 3
    assert len(figure.legends) == 1
    titles = [axes.get_title(loc="left") for axes in figure.axes[:3]]
    assert titles == ["(a) digits, mlp", "(b) digits, mlp", "(c) digits, mlp"]


def test_matrices_stand_above_their_bars_three_in_a_row():
    experiments = [experiment(noise(FIVE, lifts={"grad": 0.2}, spread=0.005))]
    figure = penalty(views(experiments))
    assert len(figure.axes) == 6
    heats, bars = figure.axes[:3], figure.axes[3:]
    assert [axes.get_title(loc="left") for axes in heats] == list(views(experiments))
    texts = [text.get_text() for text in heats[0].texts]
    assert len(texts) == 25
    assert texts.count("–") == 5
    loss = penalty_of(experiments).loss_M
    assert sorted(bar.get_width() for bar in bars[0].patches) == pytest.approx(sorted(loss))
    assert bars[0].patches[-1].get_width() == 0  # the least beaten stands on top


def test_more_views_than_columns_go_on_below():
    one = penalty_of([experiment(noise(("random", "grad")))])
    figure = penalty({f"view {i}": one for i in range(4)})
    assert len(figure.axes) == 12
    assert sum(axes.get_visible() for axes in figure.axes) == 8


@pytest.mark.parametrize("name", ["_hidden", "cash$and$carry", "x" * 200, "名前", "<b>&"])
def test_any_name_can_be_drawn(name):
    one = experiment(noise(("random", name)), name=name, dataset=name, model=name)
    for figure in (
        learning_curves(one),
        curve_grid([one]),
        penalty(views([one])),
        profiles(profile([curves(one)])),
        timing({name: [{"score": 0.1}]}, name),
    ):
        assert style.render(figure, "svg")


def test_profiles_and_ranks_draw():
    four = [curves(experiment(noise(FIVE, seed=i), name=f"e{i}")) for i in range(4)]
    two = [curves(experiment(noise(("random", "grad"), seed=i), name=f"e{i}")) for i in range(2)]
    solved = profile(four)
    (axes,) = profiles(solved).axes
    assert [line.get_label() for line in axes.lines] == list(solved.methods)
    for line, share_K in zip(axes.lines, solved.share_MK, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), [*share_K, share_K[-1]])
    for experiments in (four, two):
        placed = ranks(experiments)
        figure = critical_difference(placed)
        assert min(shape(figure)) > 0
        drawn = {text.get_text() for text in figure.axes[0].texts}
        for method, rank in zip(placed.methods, placed.mean_M, strict=True):
            assert drawn & {f"{method}  {rank:.2f}", f"{rank:.2f}  {method}"}


def test_timing_stacks_stages_and_orders_rules():
    seconds = {
        "grad": [{"forward": 0.2, "score": 0.1, "select": 0.0, "labeled": 0.05, "train": 9.0}] * 2,
        "random": [{"select": 0.01}],
    }
    axes = timing(seconds, "made").axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["grad", "random"]
    ends = max(bar.get_x() + bar.get_width() for bar in axes.patches)
    assert ends == pytest.approx(0.35)  # training is no part of an acquisition


@pytest.mark.parametrize(("count", "beside"), [(6, False), (10, True)])
def test_a_long_legend_stands_beside_the_curves(count, beside):
    figure = learning_curves(experiment(noise([f"rule{i}" for i in range(count)])))
    style.render(figure, "png")
    (axes,) = figure.axes
    right = axes.get_window_extent().x1
    assert (axes.get_legend().get_window_extent().x0 >= right) == beside
    assert axes.get_legend().get_window_extent().x1 <= figure.bbox.x1


def test_an_experiment_that_is_not_here_keeps_its_letter():
    one, other = (experiment(noise(FIVE), name=name) for name in ("a", "b"))
    figure = curve_grid([one, "c-lenet", other])
    titles = [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes[:3]]
    assert titles == ["(a) digits, mlp", "(b) c-lenet: not here", "(c) digits, mlp"]
    assert not figure.axes[1].lines
    assert figure.axes[2].lines


def test_a_view_in_which_nothing_was_tested_has_no_numbers():
    some = views([experiment(noise(FIVE, lifts={"grad": 0.1}))])["All rounds"]
    none = replace(some, experiments_MM=0 * some.experiments_MM)
    figure = penalty({"here": some, "there: not here": none})
    heat, empty, bars, hidden = figure.axes
    assert heat.texts
    assert bars.patches
    assert not empty.texts
    assert not hidden.get_visible()


def test_gains_by_third_are_bars_with_the_largest_on_top():
    def gain(value):
        return Interval(value, value - 0.01, value + 0.01, 6)

    by_rule = {
        "grad": [gain(-0.02), gain(-0.04), gain(-0.02), gain(0.0)],
        "margin": [gain(0.03), gain(0.05), gain(0.03), gain(0.01)],
        "badge": [gain(0.01), None, gain(0.01), gain(0.01)],
    }
    for dark in (False, True):
        (axes,) = gains_by_third(by_rule, "six datasets", dark=dark).axes
        assert [text.get_text() for text in axes.get_yticklabels()] == ["margin", "badge", "grad"]
        assert axes.yaxis_inverted()
        widths = [[bar.get_width() for bar in bars] for bars in axes.containers]
        np.testing.assert_allclose(widths, [[5, np.nan, -4], [3, 1, -2], [1, 1, 0]])
        assert [text.get_text() for text in axes.texts] == ["+3.0", "+1.0", "−2.0"]
        low, high = axes.get_xlim()
        assert low == pytest.approx(-3)  # of the largest gain, 5
        assert high > 5
        arrows = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == 4]
        assert len(arrows) == 1
        assert 1.5 < arrows[0] < 2  # at grad's first bar, which ends at −4
        ink = axes.texts[0].get_color()
        paper = axes.figure.get_facecolor()
        light = [matplotlib.colors.rgb_to_hsv(matplotlib.colors.to_rgb(c))[2] for c in (ink, paper)]
        assert (light[0] > 0.8 and light[1] < 0.2) if dark else (light[0] < 0.2 and light[1] > 0.8)
    assert matplotlib.rcParams["text.color"] == "black"
