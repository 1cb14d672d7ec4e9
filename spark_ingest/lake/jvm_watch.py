"""Ends the command when its JVM has died: at once, with one line, whatever it waits for."""

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

# What Python meets that asks a JVM which is gone.
_GONE = (Py4JError, ConnectionRefusedError, ConnectionResetError, EOFError)
_saying = threading.Lock()


def watch(spark: SparkSession) -> None:
    """End this process, with exit code 1, as soon as the session's JVM has ended.

    Nothing can be finished or given back without it; the next start cleans up. A session
    whose JVM somebody else started is not watched.
    """
    jvm = process(spark)
    if jvm is None or any(thread.name == __name__ for thread in threading.enumerate()):
        return
    # Its own account of a lost connection is pages long.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    # Some of it goes to the root logger.
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    threading.excepthook = _hook
    # It listens for the JVM's tasks, and prints what a lost connection is.
    listener = task_listener(spark)
    if listener is not None:
        listener.handle_error = _listener_failed
    threading.Thread(target=_wait, args=(jvm,), name=__name__, daemon=True).start()


def has_exited(error: BaseException) -> bool:
    """Whether an error says that the JVM does not answer any more."""
    return isinstance(error, _GONE) and not isinstance(error, Py4JJavaError)


def end(code: int | None = None) -> None:
    """Say that the JVM is gone, and end this process.

    ``code`` is what it exited with, where that is known.
    """
    # Never given back: whoever comes second has nothing to add.
    _saying.acquire()
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    print(
        f"spark-ingest: the JVM of Spark ended ({how if code is not None else 'killed'}): "
        "start again, what was not committed is read again; where it ran out of memory, "
        "raise spark.driver.memory",
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
