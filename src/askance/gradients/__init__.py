"""What a point would teach the model: gradients, their mean, and the discrepancy between two sets."""

from askance.gradients.discrepancy import df, df_scores, last_layer_reference
from askance.gradients.last_layer import mean_gradient, pseudo_labels, pseudo_residuals, residuals

__all__ = [
    "df",
    "df_scores",
    "last_layer_reference",
    "mean_gradient",
    "pseudo_labels",
    "pseudo_residuals",
    "residuals",
]
