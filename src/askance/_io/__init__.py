"""The disk and the operating system, for every other package; nothing here knows machine learning."""
