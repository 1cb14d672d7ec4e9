"""Exits the command with one message as soon as its JVM has exited."""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from subprocess import Popen
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from spark_ingest.lake.jvm import process, task_listener

# Errors of calls to a JVM that has exited.
_EXITED = (Py4JError, ConnectionRefusedError, ConnectionResetError, EOFError)
_reporting = threading.Lock()


def watch(spark: SparkSession) -> None:
    """Exit this process with code 1 as soon as the session's JVM has exited.

    Without it nothing can be finished or released; the next start cleans up. A JVM that another
    process started is not watched.
    """
    jvm = process(spark)
    if jvm is None or any(thread.name == __name__ for thread in threading.enumerate()):
        return
    # It logs pages for a lost connection.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    # Some of them go to the root logger.
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    threading.excepthook = _hook
    # The accumulator server prints a traceback for a lost connection.
    listener = task_listener(spark)
    if listener is not None:
        listener.handle_error = _listener_failed
    threading.Thread(target=_wait, args=(jvm,), name=__name__, daemon=True).start()


def has_exited(error: BaseException) -> bool:
    """Whether an error means that the JVM has exited."""
    return isinstance(error, _EXITED) and not isinstance(error, Py4JJavaError)


def end(code: int | None = None) -> None:
    """Report the exit of the JVM, and exit this process.

    ``code`` is the JVM's exit code, if it is known.
    """
    # Never released: report it only once.
    _reporting.acquire()
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    print(
        f"spark-ingest: the JVM of Spark exited ({how if code is not None else 'killed'}): "
        "start again, uncommitted records are read again; if it ran out of memory, increase "
        "spark.driver.memory",
        file=sys.stderr,
        flush=True,
    )
    os._exit(1)


def _wait(jvm: Popen[bytes]) -> None:
    end(jvm.wait())


def _hook(raised: Any) -> None:
    if raised.exc_value is None or not has_exited(raised.exc_value):
        threading.__excepthook__(raised)


def _listener_failed(*_request: object) -> None:
    error = sys.exception()
    if error is None or not has_exited(error):
        traceback.print_exc()
