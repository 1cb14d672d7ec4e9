"""What a process and all that it starts take: CPU seconds and memory, over time."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass

import psutil

_SAMPLE_SECONDS = 0.2
_LOOK_SECONDS = 1.0
MIB = 2**20


@dataclass(frozen=True)
class Sample:
    """The processes at one moment.

    Attributes:
        at: Seconds since 1970.
        cpu_seconds: User and system time since they began, of those that ended too.
        rss_bytes: Memory of those that live, together.
    """

    at: float
    cpu_seconds: float
    rss_bytes: int


@dataclass(frozen=True)
class Usage:
    """What was taken between two moments.

    Attributes:
        seconds: Between the two.
        cpu_seconds: Of all the processes.
        peak_rss_bytes: The most memory they had together, until the second moment.
    """

    seconds: float
    cpu_seconds: float
    peak_rss_bytes: int


class Meter:
    """Looks at a process, and its descendants, five times a second until it is stopped.

    Args:
        pid: The process.
    """

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._known: dict[int, psutil.Process] = {}
        self._cpu: dict[int, float] = {}
        self._samples: list[Sample] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> list[Sample]:
        """Look no more; all samples in the order of time."""
        self._ended.set()
        self._thread.join()
        return self._samples

    def now(self) -> float:
        """CPU seconds until the newest sample."""
        return self._samples[-1].cpu_seconds if self._samples else 0.0

    def _watch(self) -> None:
        looked = 0.0
        while True:
            # Finding descendants reads all processes of the machine: not each time.
            if time.monotonic() - looked >= _LOOK_SECONDS:
                looked = time.monotonic()
                self._look()
            self._samples.append(self._sample())
            if self._ended.wait(_SAMPLE_SECONDS):
                return

    def _look(self) -> None:
        with suppress(psutil.NoSuchProcess):
            for process in (self._root, *self._root.children(recursive=True)):
                self._known.setdefault(process.pid, process)

    def _sample(self) -> Sample:
        rss = 0
        for pid, process in list(self._known.items()):
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    rss += process.memory_info().rss
            except psutil.Error:
                # What it took stays counted.
                del self._known[pid]
                continue
            self._cpu[pid] = times.user + times.system
        return Sample(time.time(), sum(self._cpu.values()), rss)


def usage(samples: list[Sample], begin: float, end: float) -> Usage:
    """What was taken between two moments, straight lines drawn between the samples.

    Args:
        samples: In the order of time; at least one.
        begin: Seconds since 1970.
        end: Not before that.
    """
    return Usage(
        seconds=end - begin,
        cpu_seconds=_cpu_at(samples, end) - _cpu_at(samples, begin),
        peak_rss_bytes=max((each.rss_bytes for each in samples if each.at <= end), default=0),
    )


def _cpu_at(samples: list[Sample], moment: float) -> float:
    behind = bisect_left(samples, moment, key=lambda each: each.at)
    if behind == 0:
        return samples[0].cpu_seconds
    if behind == len(samples):
        return samples[-1].cpu_seconds
    before, after = samples[behind - 1], samples[behind]
    share = (moment - before.at) / (after.at - before.at)
    return before.cpu_seconds + share * (after.cpu_seconds - before.cpu_seconds)


def percentile(ordered: list[float], share: float) -> float:
    """The least of some values, in order, that this share of them does not exceed."""
    index = max(0, -(-len(ordered) * round(share * 1000) // 1000) - 1)
    return ordered[min(index, len(ordered) - 1)]
