"""``main``: run a command; whatever goes wrong becomes one line and an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import typer

from ltga.cli.app import app
from ltga.cli.rank_errors import BY_US, line_of_rank, noted_by_launcher
from ltga.cli.terminal import messages, say
from ltga.errors import LTGAError

INTERRUPTED = 130
# click's; newer versions of typer carry their own copy of click.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Exit code 0, 2 after bad usage or input with a one-line error, 130 after Ctrl-C.

    ``--debug`` anywhere on the command line shows the traceback instead of the line.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A path need not be text, nor a terminal know every sign: that must not end hours of work with a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_run([word for word in given if word != "--debug"], debug="--debug" in given))


def _run(arguments: list[str], debug: bool) -> int:
    try:
        code = app(arguments, prog_name="ltga", standalone_mode=False, obj=tuple(arguments))
        _flush()
    except UsageError as error:
        return _usage(error)
    except LTGAError as error:
        if debug:
            raise
        return _fail(str(error))
    except BrokenPipeError:  # as in `ltga methods | head -1`
        return 1
    except OSError as error:
        if debug:
            raise
        where = error.filename or "output"
        return _fail(f"{where}: cannot be read or written ({error.strerror or error})")
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    # newer versions of typer return it, older ones raise; where a launcher started us, it says so itself
    if code == INTERRUPTED and os.environ.get(BY_US) != "1":
        messages().print("interrupted; what is finished is kept, and the same command goes on from there")
    return code if isinstance(code, int) else 0


def _usage(error: Exception) -> int:
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message())  # type: ignore[attr-defined]
        return 0
    hint = f" ({context.command_path} --help)" if context else ""
    return _fail(f"{error.format_message()}{_given(error)}{hint}")  # type: ignore[attr-defined]


def _given(error: Exception) -> str:
    """What was given, where typer's message leaves that out: it stands in the error that typer's was made of."""
    try:
        (first, *_) = error.__context__.errors()  # type: ignore[union-attr]
        return "" if repr(first["input"]) in str(error) else f", got {first['input']!r}"
    except (AttributeError, TypeError, ValueError, KeyError):
        return ""


def _fail(message: str) -> int:
    line = " ".join(message.split())  # one line, whatever a library put into it
    if not noted_by_launcher(line):
        say(messages(), f"error: {line_of_rank(line)}", style="red")
    return 2


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        # What is still buffered cannot be written; it must not fail a second time when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
