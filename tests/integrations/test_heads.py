"""The heads of scikit-learn's and skorch's classifiers, against automatic differentiation."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skactiveml.classifier import SklearnClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler
from skorch import NeuralNetClassifier
from torch import nn

import askance
from askance.errors import HeadError, KindError, LabelError
from askance.gradients.last_layer import residuals
from askance.integrations.heads import head_of
from tests.naive import heads as naive

ACTIVATIONS = ("identity", "logistic", "tanh", "relu")


def task(classes, seed=0, rows=40, columns=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    y = np.concatenate([np.arange(classes), rng.integers(classes, size=rows - classes)])
    X[:, 0] += y
    return X, y


def small_mlp(activation, width=6, layers=1):
    """A few steps of training: the gradients need not be small."""
    return MLPClassifier((width,) * layers, activation=activation, solver="lbfgs", max_iter=15,
                         max_fun=10**6, random_state=0)  # fmt: skip


def dense(embedding, labels):
    """a ⊗ [h; 1] of every point, (N, D + 1, C), with the C outputs innermost like the twin's."""
    a_NC = residuals(embedding.logits, torch.as_tensor(labels))
    ones_N1 = torch.ones(len(embedding), 1, dtype=torch.float64)
    h_ND = torch.cat([embedding.features, ones_N1], dim=1)
    return torch.einsum("nd,nc->ndc", h_ND, a_NC).numpy()


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("kind", ["linear", *ACTIVATIONS])
def test_gradients_are_those_of_automatic_differentiation(kind, classes):
    X, y = task(classes)
    clf = (LogisticRegression() if kind == "linear" else small_mlp(kind, layers=2)).fit(X, y)
    ours = dense(head_of(clf).embed(X), y)
    theirs = np.array([naive.gradient(clf, x, label) for x, label in zip(X, y, strict=True)])
    if classes == 2:  # one output d ⊗ h; as a softmax of (0, z) it is (−d, d) ⊗ h
        assert np.allclose(ours[..., 0], -ours[..., 1], rtol=1e-12, atol=0)
        ours = ours[..., 1:]
    assert np.allclose(ours.reshape(len(X), -1), theirs, rtol=1e-8, atol=1e-12)


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4), kind=st.sampled_from(ACTIVATIONS))
def test_scores_are_those_of_automatic_differentiation(seed, classes, kind):
    X, y = task(classes, seed)
    clf = small_mlp(kind).fit(X[:15], y[:15])
    head = head_of(clf)
    ours = askance.df_scores(head.embed(X[15:]), head.embed(X[:15]), head.labels(y[:15]))
    theirs = naive.discrepancies(clf, X[:15], y[:15], X[15:])
    scale = np.sqrt(2) if classes == 2 else 1.0
    assert np.allclose(ours.numpy(), scale * theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "clf",
    [
        LinearDiscriminantAnalysis(),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"),
                      LogisticRegression()),
        make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression())),
        SklearnClassifier(LogisticRegression(), classes=[0, 1, 2, 3]),
        SklearnClassifier(make_pipeline(StandardScaler(), LogisticRegression()), classes=[0, 1, 2]),
    ],
    ids=["lda", "search", "pipeline", "sparse", "nested", "wrapper", "wrapped-pipeline"],
)  # fmt: skip
def test_other_linear_classifiers_and_what_is_around_them(clf):
    X, y = task(3)
    head = head_of(clf.fit(X, y))
    found = head.embed(X)
    expected = clf.predict_proba(X)[:, :3]
    assert np.allclose(torch.softmax(found.logits, 1).numpy(), expected, atol=1e-9)
    assert head.labels(y).tolist() == y.tolist()


def test_binary_sgd_is_a_softmax_of_two():
    X, y = task(2)
    clf = SGDClassifier(loss="log_loss", random_state=0).fit(X, y)
    found = head_of(clf).embed(X)
    assert np.allclose(torch.softmax(found.logits, 1).numpy(), clf.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize(
    "clf",
    [
        SGDClassifier(loss="log_loss", random_state=0),
        OneVsRestClassifier(LogisticRegression()),
        CalibratedClassifierCV(LogisticRegression(), cv=2),
        RandomForestClassifier(3),
        SGDClassifier(random_state=0),
    ],
    ids=["one-vs-rest", "ovr-wrapper", "calibrated", "forest", "hinge"],
)
def test_what_is_no_softmax_of_a_linear_head_is_refused(clf):
    X, y = task(3)
    with pytest.raises(KindError, match=r"softmax of its last linear|clf must be a linear model"):
        head_of(clf.fit(X, y)).embed(X)


def test_a_net_of_several_labels_a_point_is_refused():
    X, _ = task(3)
    many = np.random.default_rng(0).integers(2, size=(len(X), 3))
    clf = MLPClassifier((4,), max_iter=5, solver="lbfgs", random_state=0)
    with pytest.warns(Warning, match="converge"):
        clf.fit(X, many)
    with pytest.raises(KindError, match="several labels a point"):
        head_of(clf)


def test_unfitted_classifiers_and_unknown_labels_say_so():
    X, y = task(3)
    with pytest.raises(NotFittedError):
        head_of(LogisticRegression())
    head = head_of(LogisticRegression().fit(X, y))
    with pytest.raises(LabelError, match=r"knows the classes \[0, 1, 2\], y also has \[7\]"):
        head.labels(np.array([0, 7]))


class Net(nn.Module):
    def __init__(self, outputs=3, squash=False):
        super().__init__()
        self.head = nn.Linear(8, outputs)
        self.body = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5))
        self.squash = squash

    def forward(self, x):
        z = self.head(self.body(x))
        return torch.softmax(z, dim=1) if self.squash else z


def net(classes=3, **options):
    torch.manual_seed(0)
    return NeuralNetClassifier(
        Net, module__outputs=classes, criterion=nn.CrossEntropyLoss, train_split=None, verbose=0,
        max_epochs=3, **options,
    )  # fmt: skip


def test_a_skorch_net_is_embedded_as_its_module_is():
    X, y = task(3)
    X = X.astype(np.float32)
    clf = net().fit(X, y)
    clf.module_.train()
    found, expected = head_of(clf).embed(X), askance.embed(clf.module_, X)
    assert torch.equal(found.logits, expected.logits)
    assert torch.equal(found.features, expected.features)
    assert clf.module_.training, "the module was left in another mode"
    assert torch.allclose(
        torch.softmax(found.logits, 1), torch.from_numpy(clf.predict_proba(X)), atol=1e-5
    )


def test_a_skorch_net_that_gives_probabilities_has_the_same_head():
    X, y = task(3)
    X = X.astype(np.float32)
    clf = net(module__squash=True).set_params(criterion=nn.NLLLoss).fit(X, y)
    assert torch.equal(
        head_of(clf).embed(X).logits, askance.embed(clf.module_, X, head="head").logits
    )
    with pytest.raises(HeadError, match=r"must name an nn\.Linear"):
        head_of(clf, head="body").embed(X)


def test_a_skorch_nets_labels_are_the_numbers_of_its_outputs():
    """A class nobody has labelled yet has an output all the same."""
    X, y = task(3)
    seen = y != 1
    clf = net().fit(X[seen].astype(np.float32), y[seen])
    assert clf.classes_.tolist() == [0, 2]
    head = head_of(clf)
    assert head.embed(X.astype(np.float32)).classes == 3
    assert head.labels(np.array([2.0, 0.0])).tolist() == [2, 0]
    with pytest.raises(LabelError, match="numbers of its outputs"):
        head.labels(np.array([0.5]))


def test_a_net_whose_criterion_does_not_fit_its_outputs_is_refused():
    X, y = task(3)
    clf = net().set_params(criterion=nn.NLLLoss).fit(X.astype(np.float32), y)  # logits as if log p
    with pytest.raises(KindError, match="criterion and outputs do not go together"):
        head_of(clf).embed(X.astype(np.float32))
