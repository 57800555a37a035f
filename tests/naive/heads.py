"""Last-layer gradients of scikit-learn's classifiers, by automatic differentiation."""

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

ACTIVATIONS = {
    "identity": lambda x: x,
    "logistic": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": torch.relu,
}


def last_layer(clf):
    """(hidden layers as a function, weights (D, outputs), bias (outputs,)) in float64."""
    if hasattr(clf, "coefs_"):
        layers = [
            (torch.from_numpy(np.asarray(W)), torch.from_numpy(np.asarray(b)))
            for W, b in zip(clf.coefs_, clf.intercepts_, strict=True)
        ]

        def hidden(x):
            for weights, bias in layers[:-1]:
                x = ACTIVATIONS[clf.activation](x @ weights + bias)
            return x

        return hidden, *layers[-1]
    weights = torch.from_numpy(np.asarray(clf.coef_)).T
    return (lambda x: x), weights, torch.from_numpy(np.asarray(clf.intercept_))


def gradient(clf, x, label):
    """∇ of one point's log-loss over the classifier's own last-layer parameters, flat."""
    hidden, weights, bias = last_layer(clf)
    weights, bias = weights.clone().requires_grad_(), bias.clone().requires_grad_()
    output = hidden(torch.from_numpy(x)) @ weights + bias
    if len(bias) == 1:
        loss = F.binary_cross_entropy_with_logits(output, torch.tensor([float(label)]).double())
    else:
        loss = F.cross_entropy(output[None], torch.tensor([label]))
    parts = torch.autograd.grad(loss, [weights, bias])
    return torch.cat([part.flatten() for part in parts]).numpy()


def discrepancies(clf, X_labeled, labels, X_pool):
    """s(x) = n/(n+1)·‖ḡ_L − g(x)‖ of every pool point, over the classifier's own last layer."""
    n = len(X_labeled)
    mean = np.mean([gradient(clf, x, y) for x, y in zip(X_labeled, labels, strict=True)], axis=0)
    pseudo = clf.predict_proba(X_pool).argmax(1)
    each = [gradient(clf, x, y) for x, y in zip(X_pool, pseudo, strict=True)]
    return n / (n + 1) * np.linalg.norm(np.array(each) - mean, axis=1)
