"""The official sources, one file a format: from the files as they are published to rows with labels."""
