"""The script for `spark-submit`: spark-ingest with the packages of the archive beside it.

Spark unpacks the archive for executors, and in cluster mode for the driver. In client mode this
script unpacks it for the driver, once. Manifest and connections file are those beside it, unless
options name others.
"""

import shutil
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAME = "millrace"
DEFAULTS = {"--manifest": "manifest.json", "--profile": "ingest.yml"}


def packages() -> Path:
    """The folder of the unpacked archive."""
    by_spark, archive, folder = Path(NAME), HERE / f"{NAME}.tar.gz", HERE / NAME
    if not archive.exists():
        return by_spark.resolve()
    if not folder.is_dir() or folder.stat().st_mtime < archive.stat().st_mtime:
        partial = HERE / f"{NAME}.part"
        shutil.rmtree(partial, ignore_errors=True)
        shutil.unpack_archive(archive, partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
        folder.touch()
    return folder


def defaults() -> list[str]:
    """The options for the files that came with the script."""
    found = []
    for option, name in DEFAULTS.items():
        # In cluster mode, `--files` are in the working directory.
        for file in (Path(name), HERE / name):
            if file.exists():
                found += [option, str(file)]
                break
    return found


if __name__ == "__main__":
    sys.path.insert(0, str(packages()))
    # The last one counts where an option is given twice.
    sys.argv[1:1] = defaults()
    import_module("spark_ingest.cli").main()
