"""What can go wrong, as a person reads it: one line, naming the key or file and the fix."""

from __future__ import annotations

import re

from pydantic import ValidationError


class MillraceError(Exception):
    """Something that a person can mend; its text is one line with the fix.

    Attributes:
        exit_code: What a command that meets it exits with.
    """

    exit_code = 1


class ConfigurationError(MillraceError):
    """Wrong use or configuration: a setting, an option, a file, a missing program."""

    exit_code = 2


class NothingCaptured(ConfigurationError):
    """A captured table has no topic yet: it comes with the first change."""


class ServiceUnavailable(MillraceError):
    """A service that the command needs does not answer."""

    exit_code = 2


class CatalogUnavailable(ServiceUnavailable):
    """The catalog of a table, or the storage of its metadata, does not answer."""


class PersonNeeded(MillraceError):
    """A stream cannot go on before a person has decided or mended something."""


class StreamsFailed(MillraceError):
    """Some of several streams failed; the text names each with its reason."""


class LeaseLost(MillraceError):
    """Another writer has the table, or took it over while this one was away."""


class CommitRefused(MillraceError):
    """The table moved between reading and publishing a batch: read its offsets again."""


class ColumnsChanged(CommitRefused):
    """The table got other columns since the rows were planned: plan them again."""


class FilesNotWritten(MillraceError):
    """A batch was not read, decoded or written column by column; nothing of it is in a commit."""


class CommitUnknown(CommitRefused):
    """The catalog did not say whether a commit is in: the table's offsets show it."""


_CLASS = re.compile(r"\[[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*\] ")
_PLACE = re.compile(
    r"(?:== SQL of (?P<owner>\w+ \S+) \()?line (?P<line>\d+),? pos(?:ition)? (?P<at>\d+)"
)
# Where the message ends and the plan, the statement or the stack of Java begins.
_ENDS = re.compile(r"SQLSTATE:|;\n|\n\s*at |\n+Caused by:|\n*JVM stacktrace:|\n+== SQL")
_PREFIX = re.compile(r"^An error occurred while calling \S+\s*:? ")


def spark_reason(message: str, statement: str = "", before: int = 0) -> str:
    """An error of Spark's without plan, statement and trace, and where it is.

    Args:
        statement: The SQL; the line that Spark names is shown when it has several.
        before: Lines that Spark got before it, which its reader does not see.

    Returns:
        One line, which begins with the error's class where Spark gives one; a second with
        the line of the statement.
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
    """The first thing that a validation found, as one line: key, then what is wrong."""
    problem = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(part) for part in problem["loc"])
    # What pydantic puts before what a validator of ours says.
    said = problem["msg"].removeprefix("Value error, ")
    return f"{key}: {said}"
