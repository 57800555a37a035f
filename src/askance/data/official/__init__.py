"""The official sources: one family of formats a file, each with its catalogue entries."""
