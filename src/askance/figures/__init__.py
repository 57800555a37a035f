"""Results as matplotlib figures, in one style that the colour-blind can read."""
