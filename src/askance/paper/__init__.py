"""The paper: its experiments, studies and claims. No other package knows it."""
