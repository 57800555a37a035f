"""What a point would teach the model: gradients, their mean, and the discrepancy between two sets."""
