"""The command line: the only package that prints.

Exit codes:
    0    done
    1    a fault of askance's own, with its traceback
    2    something wrong with what was asked for: an option, a name, a spec, the data
    3    the store cannot be used: locked, of another experiment, damaged, not writable
    4    done in part: what was sound is kept, what was refused is told
    130  stopped by Ctrl-C or SIGTERM; the same command goes on
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer

import askance
from askance.cli import (
    advise,
    data,
    export,
    ingest,
    label,
    label_studio,
    listing,
    paper,
    report,
    run,
    select,
)
from askance.cli.console import note, problem
from askance.errors import AskanceError, StoreError

app = typer.Typer(
    name="askance",
    help="Choose which examples to label next, and measure whether that beats random labelling.",
    epilog="Exit codes: 0 done, 1 an error in askance, 2 wrong input, 3 the store cannot be used, "
    "4 partly done, 130 stopped (the same command continues).",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run.run)
app.command("export")(export.export)
app.command("report")(report.report)
app.command("select")(select.select)
app.command("label")(label.label)
app.command("ingest")(ingest.ingest)
app.command("advise")(advise.advise)
app.command("list")(listing.show)
app.add_typer(data.app, name="data")
app.add_typer(paper.app, name="paper")
app.add_typer(label_studio.app, name="label-studio")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"askance {askance.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the library's log messages.")
    ] = False,
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(name)s: %(message)s"
    )


# The base of what is raised for wrong arguments: of click, or of the click that Typer carries.
_UsageError: Any = typer.BadParameter.__base__


def _stop(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


def _stopping_signals() -> list[signal.Signals]:
    """SIGTERM, and where there is one SIGHUP, of a terminal that is closed; `nohup` has it ignored."""
    signals = [signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return signals


def main(arguments: list[str] | None = None) -> int:
    """Run a command; its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal may have no sign for ±: that is no fault
            stream.reconfigure(errors="replace")
    before = {each: signal.signal(each, _stop) for each in _stopping_signals()}
    try:
        code = _run_command(arguments)
        sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        problem("no room is left where this was to be written; make room, or write elsewhere")
        code = 3
        _discard(sys.stdout)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    return code


def _discard(stream: Any) -> None:
    """Drop what a stream still holds: at exit, Python would try to write it again and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _run_command(arguments: list[str] | None) -> int:
    try:
        code = app(arguments, standalone_mode=False)
    except typer.Exit as ended:
        return ended.exit_code
    except (typer.Abort, KeyboardInterrupt):
        note("Stopped.")
        return 130
    except StoreError as error:
        problem(str(error))
        return 3
    except AskanceError as error:
        problem(str(error))
        return 2
    except _UsageError as error:
        error.show()
        return error.exit_code
    return code if isinstance(code, int) else 0


def entry() -> None:
    """What the installed `askance` calls."""
    sys.exit(main())
