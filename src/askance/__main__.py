from askance.cli import entry

entry()
