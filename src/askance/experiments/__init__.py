"""Experiments: their description (`spec`), their results (`store`), and the tidy table (`export`)."""
