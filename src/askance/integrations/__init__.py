"""The outside world: other libraries' models, rules and records. Each module needs its own extra."""
