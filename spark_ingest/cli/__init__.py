"""`spark-ingest`: land Kafka topics in bronze Iceberg tables, and verify them."""

from __future__ import annotations

import sys

from spark_ingest.cli import (
    alerts,
    backfill,
    drafts,
    maintain,
    publish,
    quarantine,
    reconcile,
    recover,
    schemas,
    streams,
    verify,
)
from spark_ingest.cli.app import app
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.lake.preflight import check_pyspark

__all__ = [
    "alerts",
    "app",
    "backfill",
    "drafts",
    "main",
    "maintain",
    "publish",
    "quarantine",
    "reconcile",
    "recover",
    "schemas",
    "streams",
    "verify",
]


def main() -> None:
    """Run the command; print an expected error as one line on standard error."""
    try:
        app()
    except MillraceError as error:
        print(f"spark-ingest: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pyspark", "py4j"):
            raise
        # pyspark is missing, or of a version without this module.
        try:
            check_pyspark()
        except ConfigurationError as reason:
            print(f"spark-ingest: {reason}", file=sys.stderr)
            sys.exit(reason.exit_code)
        raise
    except Exception as error:
        from spark_ingest.lake import jvm_watch
        from spark_ingest.lake.jvm import JAVA_ERRORS, java_reason

        if jvm_watch.has_exited(error):
            jvm_watch.end()
        if not isinstance(error, (*JAVA_ERRORS, OSError)):
            raise
        print(f"spark-ingest: {java_reason(error)}", file=sys.stderr)
        sys.exit(1)
