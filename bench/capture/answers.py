"""A reader who asks a live view for its newest change now and then, in a Spark of its own.

A program of its own: it prints a line of JSON after each answer, and ends at SIGTERM. One answer
follows the other, until its JVM is warm; from SIGUSR1 on there are four a minute.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from bench.capture.events import ANSWER, say
from sandbox.settings import PROJECT, load_home
from sandbox.tour.query import open_lake
from spark_ingest.lake.session import silence_statement_log

_EVERY_SECONDS = 15.0


def main(stream: str, view: str) -> None:
    """Query until stopped.

    Args:
        stream: dbt's name of the source.
        view: The live view of it, a model.
    """
    stopping, paced = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda _signal, _frame: stopping.set())
    signal.signal(signal.SIGUSR1, lambda _signal, _frame: paced.set())
    spark = open_lake(load_home(), "bench.capture.answers")
    silence_statement_log()
    while not stopping.is_set():
        begun = time.time()
        answer = spark.sql(f"select max(_commit_id) from intermediate.{view}").collect()
        at = time.time()
        say(ANSWER, at=at, seconds=at - begun, read={stream: answer[0][0]})
        if paced.is_set():
            stopping.wait(begun + _EVERY_SECONDS - at)


if __name__ == "__main__":
    os.chdir(PROJECT)
    main(*sys.argv[1:])
