"""Fetch the Java parts and archive Spark's classes: what runs beside pip in a new checkout.

It imports nothing but what `environment.py` has installed before all else.
"""

from __future__ import annotations

import sys

from sandbox.install import parts, spark_conf
from sandbox.ui import say
from spark_ingest.errors import MillraceError


def main() -> int:
    """Bring what is missing; the exit code."""
    try:
        # All at once: to ask for each on its own takes longer.
        parts.fetch()
        spark_conf.bring_spark()
    except MillraceError as error:
        say(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
