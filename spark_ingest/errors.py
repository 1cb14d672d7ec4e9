"""Exceptions with messages for users: one line with the key or file, and the fix."""

from __future__ import annotations

import re

from pydantic import ValidationError


class MillraceError(Exception):
    """An error that the user can fix; its message is one line with the fix.

    Attributes:
        exit_code: Exit code of a command that fails with it.
    """

    exit_code = 1


class ConfigurationError(MillraceError):
    """Wrong usage or configuration: a setting, an option, a file, a missing program."""

    exit_code = 2


class NothingCaptured(ConfigurationError):
    """A captured table has no topic yet: it is created with the first change."""


class ServiceUnavailable(MillraceError):
    """A service that the command needs does not answer."""

    exit_code = 2


class CatalogUnavailable(ServiceUnavailable):
    """The catalog of a table, or the storage of its metadata, does not answer."""


class PersonNeeded(MillraceError):
    """A stream cannot continue without a decision or a fix by the operator."""


class StreamsFailed(MillraceError):
    """Some streams failed; the message has the reason of each."""


class LeaseLost(MillraceError):
    """Another writer has the lease of the table."""


class CommitRefused(MillraceError):
    """The table has changed between reading and publishing a batch: read its offsets again."""


class ColumnsChanged(CommitRefused):
    """The table's columns have changed since the rows were planned: plan them again."""


class FilesNotWritten(MillraceError):
    """A batch was not read, decoded or written column by column; nothing was committed."""


class CommitUnknown(CommitRefused):
    """The result of a commit is unknown: the table's offsets show it."""


_CLASS = re.compile(r"\[[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*\] ")
_PLACE = re.compile(
    r"(?:== SQL of (?P<owner>\w+ \S+) \()?line (?P<line>\d+),? pos(?:ition)? (?P<at>\d+)"
)
# The end of the message, before the plan, the statement or the Java stack trace.
_ENDS = re.compile(r"SQLSTATE:|;\n|\n\s*at |\n+Caused by:|\n*JVM stacktrace:|\n+== SQL")
_PREFIX = re.compile(r"^An error occurred while calling \S+\s*:? ")


def spark_reason(message: str, statement: str = "", before: int = 0) -> str:
    """A Spark error without plan, statement and stack trace, with its position.

    Args:
        statement: The SQL; if it has several lines, the one with the error is shown.
        before: Number of lines that were added before the statement.

    Returns:
        One line, which begins with the error class if there is one; optionally a second with the
        line of the statement.
    """
    known = _CLASS.search(message)
    text = message[known.start() :] if known else message.strip()
    end = _ENDS.search(text)
    head, rest = (text[: end.start()], text[end.start() :]) if end else (text, "")
    reason = _PREFIX.sub("", " ".join(head.split()))
    if "Cannot find catalog plugin class" in reason:
        reason = reason.rstrip(".") + ": run `sandbox parts spark`, which fetches the JARs"
    place = _PLACE.search(rest)
    if place is None:
        return reason
    number, at = int(place["line"]), place["at"]
    if place["owner"]:
        return f"{reason} (line {number}, position {at} of {place['owner']})"
    number -= before
    where = f"line {number}, position {at}"
    lines = statement.splitlines()
    shown = lines[number - 1].strip() if 1 < len(lines) >= number else ""
    return f"{reason} ({where})" + (f"\nline {number}: {shown}" if shown else "")


def first_problem(error: ValidationError) -> str:
    """The first validation error as one line: key and message."""
    problem = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(part) for part in problem["loc"])
    # Pydantic's prefix for messages of our own validators.
    message = problem["msg"].removeprefix("Value error, ")
    return f"{key}: {message}"
