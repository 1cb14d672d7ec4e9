"""Programs that take turns: at each step it is decided who goes on, and what the network does.

A program runs in a thread of its own and stops wherever it asks for or changes what it shares
with others. Only one runs at a time. So an order is the list of the decisions that made it, and
can be tried again.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum, auto

_MOST_PROGRAMS = 4
_MOST_STEPS = 5_000
# Threads are kept from one order to the next.
_threads = ThreadPoolExecutor(_MOST_PROGRAMS, thread_name_prefix="program")


class Delivery(Enum):
    """What the sender of a request learns."""

    DONE = auto()
    REFUSED = auto()
    UNANSWERED = auto()


class Fate(Enum):
    """What becomes of a request, the usual first."""

    ARRIVES = auto()
    ANSWER_LOST = auto()
    LOST = auto()
    LATE = auto()
    # Late, and the catalog is away for what the same program sends next.
    LATE_AND_AWAY = auto()
    SENDER_KILLED = auto()
    # It arrives twice, the second time at once or any time later: the sender gets the first
    # answer. Where it gets the second, a refusal, Iceberg deletes what the commit wrote.
    TWICE = auto()
    AGAIN_LATER = auto()


# What a network does that repeats no request.
ONCE = [fate for fate in Fate if fate not in {Fate.TWICE, Fate.AGAIN_LATER}]


class Killed(BaseException):
    """The program was killed at this step."""


class Decisions:
    """The decisions of an order: those that are prescribed, then those of a rule.

    Attributes:
        taken: Each decision; 0 is the usual: the same program goes on, nothing is lost.
        options: Between how many each was.
    """

    def __init__(self, prescribed: Sequence[int], rule: Callable[[int], int]) -> None:
        self._prescribed = prescribed
        self._rule = rule
        self.taken: list[int] = []
        self.options: list[int] = []

    def __call__(self, options: int) -> int:
        left = self._prescribed[len(self.taken) :]
        self.taken.append(left[0] if left else self._rule(options))
        self.options.append(options)
        return self.taken[-1]


def usual(_options: int) -> int:
    """The rule of decisions that nobody prescribed: always the usual."""
    return 0


def by_chance(seed: int) -> Callable[[int], int]:
    """The rule that takes something else than the usual now and then."""
    dice = random.Random(seed)
    often = dice.choice((0.05, 0.15, 0.4))

    def rule(options: int) -> int:
        if options == 1 or dice.random() > often:
            return 0
        return dice.randrange(1, options)

    return rule


def every_order(trial: Callable[[Decisions], None], depth: int) -> Iterator[list[int]]:
    """Try each order with at most ``depth`` decisions that are not the usual.

    Args:
        trial: Runs the programs by these decisions.
        depth: How many turns of another program, lost requests and kills an order has at most.

    Yields:
        The decisions of each, when it was tried.
    """
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        prescribed = waiting.pop()
        decisions = Decisions(prescribed, usual)
        trial(decisions)
        yield decisions.taken
        if sum(map(bool, prescribed)) == depth:
            continue
        for at in range(len(prescribed), len(decisions.options)):
            before = (*prescribed, *(0,) * (at - len(prescribed)))
            waiting += [(*before, other) for other in range(1, decisions.options[at])]


class _Program:
    """One program in its thread."""

    def __init__(self, name: str, work: Callable[[], None], schedule: Schedule) -> None:
        self.name = name
        self.may_go = threading.Lock()
        self.may_go.acquire()
        self.is_over = False
        self.is_killed = False
        self.is_cut_off = False
        self._work = work
        self._schedule = schedule
        self.outcome: Future[None] = _threads.submit(self._run)

    def _run(self) -> None:
        self.may_go.acquire()
        self._schedule.going = self
        try:
            self._work()
        except Killed:
            pass
        finally:
            self.is_over = True
            self._schedule.hand_on()


class Schedule:
    """Lets programs take their steps in the order that somebody decides.

    Args:
        decide: Makes each decision, between so many.
        fates: What may become of a request, the usual first.

    Attributes:
        log: Each step as ``(program, what)``, to show an order that fails.
        is_quiet: Whether nothing is lost and nobody killed.
        going: The program whose turn it is; None before and after all of them.
    """

    def __init__(self, decide: Callable[[int], int], fates: Sequence[Fate] = ONCE) -> None:
        self._decide = decide
        self._fates = fates
        self._programs: list[_Program] = []
        self._on_their_way: list[Callable[[], bool]] = []
        self._all_over = threading.Lock()
        self.log: list[tuple[str, str]] = []
        self.is_quiet = False
        self.going: _Program | None = None

    def run(self, works: Mapping[str, Callable[[], None]]) -> None:
        """Run programs to their ends; what is on its way by then arrives."""
        self._programs = [_Program(name, work, self) for name, work in works.items()]
        self._all_over.acquire()
        self.hand_on()
        self._all_over.acquire()
        self.going = None
        while self._on_their_way:
            self._bring(0)
        for program in self._programs:
            program.outcome.result()

    def hand_on(self) -> None:
        """Let another program go on, now that none has its turn; or it was the last."""
        if waiting := [each for each in self._programs if not each.is_over]:
            self._chosen(waiting).may_go.release()
        else:
            self._all_over.release()

    def _chosen(self, waiting: Sequence[_Program]) -> _Program:
        """Which of these goes on, behind what the network brings before."""
        while True:
            chosen = self._decide(len(waiting) + len(self._on_their_way))
            if chosen < len(waiting):
                return waiting[chosen]
            self._bring(chosen - len(waiting))

    def step(self, what: str) -> None:
        """Let others go first, where that is decided.

        Raises:
            Killed: The program ends here, and does not get to tidy up.
            AssertionError: The programs do not come to an end.
        """
        program = self.going
        # Before and after all programs nobody could come between.
        if program is None:
            return
        if program.is_killed:
            raise Killed
        self.log.append((program.name, what))
        assert len(self.log) < _MOST_STEPS, f"no end after {_MOST_STEPS} steps"
        others = [p for p in self._programs if not p.is_over and p is not program]
        chosen = self._chosen([program, *others])
        if chosen is not program:
            chosen.may_go.release()
            program.may_go.acquire()
            self.going = program

    def happens(self, what: str) -> bool:
        """Whether some trouble comes now."""
        if self.is_quiet or not self._decide(2):
            return False
        self.log.append(("trouble", what))
        return True

    def send(self, arrive: Callable[[], bool]) -> Delivery:
        """Send a request, which is done or refused when it arrives, if it does.

        Raises:
            Killed: The program ends here.
        """
        self.step("commit")
        fate = Fate.ARRIVES
        if not self.is_quiet:
            fate = self._fates[self._decide(len(self._fates))]
        if self.going is not None and self.going.is_cut_off:
            self.going.is_cut_off, fate = False, Fate.LOST
        if fate is Fate.ARRIVES:
            return Delivery.DONE if arrive() else Delivery.REFUSED
        self.log.append(("network", fate.name.lower().replace("_", " ")))
        if fate in {Fate.TWICE, Fate.AGAIN_LATER}:
            is_done = arrive()
            if fate is Fate.TWICE:
                arrive()
            else:
                self._on_their_way.append(arrive)
            return Delivery.DONE if is_done else Delivery.REFUSED
        if fate in {Fate.LATE, Fate.LATE_AND_AWAY}:
            self._on_their_way.append(arrive)
            if self.going is not None:
                self.going.is_cut_off = fate is Fate.LATE_AND_AWAY
        elif fate is not Fate.LOST:
            arrive()
        if fate is Fate.SENDER_KILLED and self.going is not None:
            self.going.is_killed = True
            raise Killed
        return Delivery.UNANSWERED

    def _bring(self, which: int) -> None:
        is_done = self._on_their_way.pop(which)()
        self.log.append(("network", f"brings it: {'done' if is_done else 'refused'}"))
