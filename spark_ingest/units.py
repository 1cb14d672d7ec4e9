"""Parse the durations and sizes of options."""

from __future__ import annotations

import re
from datetime import timedelta

from spark_ingest.errors import ConfigurationError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)", re.ASCII | re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_SIZE = re.compile(r"(\d+)\s*(KB|MB|GB)", re.ASCII | re.IGNORECASE)
_BYTES = {"KB": 2**10, "MB": 2**20, "GB": 2**30}


def duration(option: str, text: str) -> timedelta:
    """Parse a duration: ``500ms``, ``30s``, ``10m``, ``6h``, ``7d``.

    Raises:
        ConfigurationError: It is invalid; the message has the option.
    """
    match = _DURATION.fullmatch(text.strip())
    try:
        if match is not None:
            return timedelta(seconds=float(match[1]) * _SECONDS[match[2].lower()])
    except OverflowError:
        pass
    raise ConfigurationError(f"{option} {text}: a number and ms, s, m, h or d, for example 10s")


def size_of(option: str, text: str) -> int:
    """Parse a size in bytes: ``64KB``, ``128MB``, ``1GB``.

    Raises:
        ConfigurationError: It is invalid; the message has the option.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise ConfigurationError(
            f"{option} {text}: a whole number and KB, MB or GB, for example 128MB"
        )
    return int(match[1]) * _BYTES[match[2].upper()]
