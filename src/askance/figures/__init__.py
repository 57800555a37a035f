"""From tables to pictures: matplotlib figures in one style, safe for the colour-blind."""
