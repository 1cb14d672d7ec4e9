"""What can go wrong, as a person reads it: one line, naming the key or file and the fix."""

from __future__ import annotations


class MillraceError(Exception):
    """Something that a person can mend; its text is one line with the fix.

    Attributes:
        exit_code: What a command that meets it exits with.
    """

    exit_code = 1


class ConfigurationError(MillraceError):
    """Wrong use or configuration: a setting, an option, a file, a missing program."""

    exit_code = 2


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
    """The table got other columns since the rows were planned: plan them anew."""


class CommitUnknown(CommitRefused):
    """The catalog did not say whether a commit is in: the table's offsets tell."""
