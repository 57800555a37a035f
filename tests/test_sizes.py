"""Features and logits of any size a float can have: the right picks by every road, or a refusal."""

import numpy as np
import pytest
import torch

import askance
from askance import strategies
from askance.errors import InputError
from askance.gradients.last_layer import pseudo_residuals
from askance.picking.dense import dense_kcenter, dense_kmeanspp
from askance.picking.kcenter import kcenter
from askance.picking.kmeanspp import kmeanspp
from askance.picking.points import feature_points, gradient_points
from askance.pools import ParquetSource, select_from
from askance.selection import select_many
from askance.strategies import EGL, Badge, Grad, GradNorm, GradSpread, KCenter, PowerGrad
from tests.naive import picking as naive
from tests.picking.pools import Pool
from tests.picking.test_sharded import by_clocks, by_cover
from tests.pools import worlds
from tests.rules import ONE_MODEL

# What hung must fail, and soon.
pytestmark = pytest.mark.timeout(60)

N, L, C, D, PICKS = 120, 12, 4, 6, 25
# Without the bias every one of these picks the same where all features are multiplied by one number.
SCALE_FREE = (
    Badge(),
    KCenter(),
    Grad(bias=False),
    PowerGrad(grad=Grad(bias=False)),
    GradSpread(grad=Grad(bias=False)),
    GradNorm(bias=False),
    EGL(bias=False),
)
# bait inverts a sum of squares, so it refuses features of such sizes (tests/test_strategies_bait.py).
NAMES = [name for name in ONE_MODEL if name != "bait"]
EVERY = (*map(strategies.get, NAMES), *SCALE_FREE, Badge(bias=True))
# Of the largest feature. The first is just under float32's largest number, the last is subnormal there.
POWERS = (127, 66, 63, 45, -45, -52, -63, -126)
WAYS = ("embedding", "blocks", "several", "parquet")


def label(rule):
    options = [name for name in ("bias",) if not getattr(rule, name, True)]
    return rule.name + "".join(f" without {name}" for name in options)


def task(seed=0, dtype=torch.float32):
    """(pool, (labelled set, labels)); features are whole numbers of 2⁻¹¹, below 1 in size."""
    rng = np.random.default_rng(seed)

    def some(count):
        features = rng.integers(-2047, 2048, size=(count, D)) / 2048
        logits = rng.normal(size=(count, C))
        return askance.Embedding(*(torch.tensor(x).to(dtype) for x in (logits, features)))

    return some(N), (some(L), torch.arange(L) % C)


def scaled(embedding, power):
    return askance.Embedding(embedding.logits, embedding.features * 2.0**power)


def doubled(embedding):
    """The same numbers in float64."""
    return askance.Embedding(embedding.logits.double(), embedding.features.double())


def with_row(embedding, row, features):
    changed = embedding.features.clone()
    changed[row] = features
    return askance.Embedding(embedding.logits, changed)


def picked(way, rule, pool, labeled, n, folder):
    """(rows, scores) by one of the roads."""
    if way in ("embedding", "blocks"):
        blocks = (pool[start : start + 7] for start in range(0, len(pool), 7))
        whole = pool if way == "embedding" else blocks
        picks = askance.select(None, labeled, whole, n, strategy=rule)
        return picks.indices, picks.scores
    if way == "several":
        picks = select_many(
            [labeled] * 2, [pool] * 2, n, strategy=rule, seeds=[1, 0], exclude=[None] * 2
        )[1]
        return picks.indices, picks.scores
    worlds.write(folder / "pool", pool, [50, 40, 30], 16)
    worlds.write(folder / "labeled", labeled[0], [L], label=labeled[1].numpy())
    source = ParquetSource.open(str(folder / "pool"), worlds.VECTORS)
    labeled_source = ParquetSource.open(str(folder / "labeled"), worlds.LABELED)
    picks = select_from(source, n, labeled=labeled_source, strategy=rule)
    return picks.indices, picks.scores


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("rule", SCALE_FREE, ids=label)
def test_picks_do_not_depend_on_the_size_of_all_features(rule, power, way, tmp_path):
    pool, (labeled, labels) = task()
    rows, _ = picked("embedding", rule, pool, (labeled, labels), PICKS, tmp_path)
    large = scaled(pool, power), (scaled(labeled, power), labels)
    assert torch.isfinite(large[0].features).all()
    again, scores = picked(way, rule, *large, PICKS, tmp_path)
    assert again.tolist() == rows.tolist()
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", [3e38, 1e20, 1e19, -3e38, 1e-30])
@pytest.mark.parametrize("rule", EVERY, ids=label)
@pytest.mark.parametrize("where", ["pool", "labeled"])
def test_one_row_of_another_size(rule, value, way, where, tmp_path):
    """The picks of float64, in which every such square is a number."""
    pool, (labeled, labels) = task()
    if where == "pool":
        pool = with_row(pool, 77, value)
    else:
        labeled = with_row(labeled, 5, value)
    expected = askance.select(None, (doubled(labeled), labels), doubled(pool), PICKS, strategy=rule)
    rows, scores = picked(way, rule, pool, (labeled, labels), PICKS, tmp_path)
    assert rows.tolist() == expected.indices.tolist()
    np.testing.assert_allclose(scores, expected.scores, rtol=1e-4, atol=1e-6)
    if where == "pool" and abs(value) > 1 and rule.name in ("badge", "kcenter", "gradnorm", "egl"):
        assert rows[0] == 77


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", [3e38, 1e20, -3e38])
@pytest.mark.parametrize("rule", EVERY, ids=label)
def test_logits_of_any_size(rule, value, way, tmp_path):
    """A point as sure as that has no gradient and no entropy."""
    pool, (labeled, labels) = task()
    logits = pool.logits.clone()
    logits[:5] = torch.tensor([value, 0.0, -value, -abs(value)])
    pool = askance.Embedding(logits, pool.features)
    expected = askance.select(None, (doubled(labeled), labels), doubled(pool), N, strategy=rule)
    rows, scores = picked(way, rule, pool, (labeled, labels), N, tmp_path)
    assert rows.tolist() == expected.indices.tolist()
    assert np.isfinite(scores).all()
    if rule.name in ("entropy", "margin", "least-confidence", "gradnorm", "egl"):
        assert set(rows[-5:].tolist()) == set(range(5))


def test_the_farthest_point_is_picked_first_however_far():
    pool, (labeled, labels) = task()
    pool = with_row(pool, 77, torch.tensor([3e38, 0, 0, 0, 0, 0]))
    picks = askance.select(None, (labeled, labels), pool, PICKS, strategy="kcenter")
    rows, scores = naive.farthest_first(
        pool.features.double().numpy(), labeled.features.double().numpy(), PICKS
    )
    assert picks.indices.tolist() == rows.tolist()
    np.testing.assert_allclose(picks.scores, scores, rtol=1e-9)


@pytest.mark.parametrize("value", [3e38, 1e20, 1e19, 1e-30])
@pytest.mark.parametrize("cuts", [(30, 78), (77, 78), (1, 2)])
def test_shards_of_other_sizes_pick_as_one(value, cuts):
    """A long row is a centre of shards that hold none: their own bounds must bear it."""
    pool, (labeled, _) = task()
    pool = with_row(pool, 77, value)
    clocks = np.random.default_rng(1).exponential(size=N)
    points = gradient_points(pool.logits, pool.features)
    G = naive.pseudo_gradients(pool.logits, pool.features)
    whole = kmeanspp(points, PICKS, clocks)
    assert whole.rows.tolist() == naive.clocks(G, PICKS, clocks)[0].tolist()
    farthest = kcenter(feature_points(pool.features), labeled.features, PICKS)
    parts = np.split(np.arange(N), cuts)
    clocked = Pool(pool.logits, pool.features, clocks, PICKS, bias=False)
    assert by_clocks(clocked, parts, PICKS).rows.tolist() == whole.rows.tolist()
    covered = by_cover(pool.features, labeled.features, parts, PICKS)
    assert covered.rows.tolist() == farthest.rows.tolist()


@pytest.mark.parametrize("value", [3e38, 1e20, 1e19, 1e-30])
def test_the_way_of_a_gpu_gives_the_same_picks_or_none(value):
    pool, (labeled, _) = task()
    pool = with_row(pool, 77, value)
    clocks = np.random.default_rng(1).exponential(size=N)
    lazy = kmeanspp(gradient_points(pool.logits, pool.features), PICKS, clocks)
    a_NC = pseudo_residuals(pool.logits.double())
    (dense,) = dense_kmeanspp(pool.features[None], a_NC[None], [clocks], PICKS)
    assert dense is None or dense.rows.tolist() == lazy.rows.tolist()
    farthest = kcenter(feature_points(pool.features), labeled.features, PICKS)
    (dense,) = dense_kcenter(pool.features[None], [labeled.features], PICKS)
    assert dense is None or dense.rows.tolist() == farthest.rows.tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", ["pool", "labelled"])
@pytest.mark.parametrize("value", [1e141, 1.7e308, -1e200, 1e-141])
@pytest.mark.parametrize("rule", ["kcenter", "badge", "grad", "gradnorm", "grad-spread"])
def test_features_whose_squares_float64_cannot_hold_are_refused(rule, value, where, way, tmp_path):
    if where == "labelled" and "labeled" not in strategies.get(rule).needs:
        return
    pool, (labeled, labels) = task(dtype=torch.float64)
    if where == "pool":
        pool = with_row(pool, 77, value)
    else:
        labeled = with_row(labeled, 5, value)
    row = 77 if where == "pool" else 5
    with pytest.raises(InputError, match=rf"1 of \d+ {where} rows .* row {row}, where it is"):
        picked(way, strategies.get(rule), pool, (labeled, labels), PICKS, tmp_path)


@pytest.mark.parametrize("rule", ["kcenter", "badge"])
@pytest.mark.parametrize("value", [1e39, 1e-39])
def test_features_that_a_cache_of_float32_cannot_hold_are_refused(rule, value, tmp_path):
    pool, labeled = task(dtype=torch.float64)
    pool = with_row(pool, 77, value)
    with pytest.raises(InputError, match=r"row 77, where it is 1e[+-]39\. Divide all"):
        picked("parquet", strategies.get(rule), pool, labeled, PICKS, tmp_path)
    assert len(picked("embedding", strategies.get(rule), pool, labeled, PICKS, tmp_path)[0])


def test_numbers_at_the_limits_are_taken():
    pool, (labeled, labels) = task(dtype=torch.float64)
    for rule in SCALE_FREE:
        plain = askance.select(None, (labeled, labels), pool, PICKS, strategy=rule).indices
        for power in (465, -450):  # 2⁴⁶⁵ is 1e140; the smallest of 2⁻⁴⁵⁰ · 2⁻¹¹ is above 1e-140
            large = scaled(pool, power), (scaled(labeled, power), labels)
            again = askance.select(None, large[1], large[0], PICKS, strategy=rule).indices
            assert again.tolist() == plain.tolist()
