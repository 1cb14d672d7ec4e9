"""Open UTF-8 text files, with or without byte order mark, optionally gzip-compressed."""

from __future__ import annotations

import gzip
import zlib
from io import StringIO
from pathlib import Path
from typing import NoReturn, TextIO

from spark_ingest.errors import ConfigurationError


def open_text(path: Path) -> TextIO:
    """Open a text file, with or without byte order mark; pipes and ``.gz`` are read into memory.

    Raises:
        ConfigurationError: It cannot be read.
    """
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as compressed:
                return StringIO(compressed.read(), newline="")
        text = path.open(encoding="utf-8-sig", newline="")
        if text.seekable():
            return text
        with text:
            return StringIO(text.read(), newline="")
    except UnicodeDecodeError as error:
        not_utf8(str(path), error)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise ConfigurationError(f"{path} cannot be decompressed: {error}") from error


def not_utf8(path: str, error: UnicodeDecodeError) -> NoReturn:
    """Raise the error for a file with another encoding.

    Raises:
        ConfigurationError: Always.
    """
    raise ConfigurationError(
        f"{path} is not UTF-8 ({error.reason}); convert it, such as with `iconv -f latin1 -t utf-8`"
    ) from error
