"""Files named by a URI, such as ``s3://bucket/manifest.json``, copied to this machine."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path, PurePosixPath

from spark_ingest.errors import ConfigurationError


def local_file(name: str) -> Path:
    """The path of a file; one that is named by a URI is copied first, until this process ends.

    Arrow's file systems read it: S3, GCS, HDFS and others, with the credentials of the machine.

    Raises:
        ConfigurationError: It cannot be read, or its scheme is unknown.
    """
    if "://" not in name:
        return Path(name)
    # A fifth of a second, for those who need it.
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem

    try:
        files, path = FileSystem.from_uri(name)
        with files.open_input_stream(path) as stream:
            data = stream.read()
    except (ArrowException, OSError) as error:
        raise ConfigurationError(f"{name} cannot be read: {error}") from error
    folder = Path(tempfile.mkdtemp(prefix="spark-ingest-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = folder / PurePosixPath(path).name
    copy.write_bytes(data)
    return copy
