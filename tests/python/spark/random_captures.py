"""Rounds of random transactions, each held by an increment and compared.

After each round the history that grew must be the one that a full refresh makes of the same
records; after the last, when ingest has read all, it must be what the database's own log says.
"""

from __future__ import annotations

from tests.python.world.artists import ARTISTS, PARTITIONS, Artists, State
from tests.python.world.rounds import NO_TESTS, Rounds, differences

HISTORY = "int_moma__artists_history"
HELD = "int_moma__artists_current"
LIVE = "int_moma__artists_live"
NAMES = ["Frida", "Georgia", "Hilma", None, ""]
NATIONALITIES = ["Mexican", "American", "Swedish", None]
KEYS = range(1, 13)
# What a transaction does; mostly it updates a row.
KINDS = ["create", "update", "update", "update", "delete", "rename"]
KINDS += ["open", "end", "snapshot", "again", "truncate"]
# How a query of ``lake_program`` gives a null.
NO_VALUE = "∅"


class Trial(Rounds):
    """The steps of some rounds, and what they must give.

    Attributes:
        alike: Those that must give the same: what is live before and behind a build, and what
            is held behind it.
        history: The step that gives the whole history.
        emptied: What is live of a table that ingest has made again.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.artists = Artists(self.random)
        self.alike: list[tuple[int, int, int]] = []
        self.history = 0
        self.emptied = 0

    def rounds(self, count: int) -> None:
        for artist_id in list(KEYS)[:6]:
            self.artists.create(artist_id, self._state())
        # What was there before capture began, ingest learns from the snapshot alone.
        for partition in range(PARTITIONS):
            self.artists.deliver(partition, 1000)
        self.artists.truth.clear()
        self.artists.snapshot()
        self._made("the table")
        for number in range(count):
            for _ in range(self.random.choice([0, 3, 12])):
                self._transaction()
            if number == count - 1:
                self.artists.end_updates()
            self._ingest(everything=number == count - 1)
            # Now and then what is live is as old as the round before last.
            renewed = [LIVE] if number % 2 else []
            how = (
                ["build", "--select", f"+{HELD}", f"+{LIVE}", *NO_TESTS]
                if number == 0
                else ["run", "--select", HISTORY, *renewed]
            )
            before = self._rows_of(LIVE) if number else None
            self.dbt(how)
            held, behind = self._rows_of(HELD), self._rows_of(LIVE)
            self.alike.append((behind if before is None else before, held, behind))
            whole = [*how, "--full-refresh"] if number else how
            self.whole(whole)
            self.compare(number, differences(f"intermediate.{HISTORY}"))
        self.history = self.ask(
            "select artist_id, artist_name, nationality, is_deleted,"
            " is_current, date_format(valid_from_at, 'yyyy-MM-dd HH:mm:ss.SSS')"
            f" from intermediate.{HISTORY} order by artist_id, version_key"
        )

        # What is live is as old as the build before, and the history a full refresh.
        self.dbt(["run", "--select", HISTORY, "--full-refresh"])
        self.alike.append((self._rows_of(LIVE), *self.alike[-1][1:]))

        self._made("another table")
        self.emptied = self._rows_of(LIVE)

    def expected(self) -> list[list[str]]:
        """What the history must be, as the last step gives it, by key."""
        rows: list[list[str]] = []
        for artist_id, versions in sorted(self.artists.truth.items()):
            last: State = (None, None)
            for at, version in enumerate(versions):
                last = version.state or last
                moment = version.since.isoformat(" ", "milliseconds")
                rows.append(
                    [
                        str(artist_id),
                        *(NO_VALUE if text is None else text for text in last),
                        str(version.state is None).lower(),
                        str(at == len(versions) - 1).lower(),
                        moment.partition("+")[0],
                    ]
                )
        return rows

    def _transaction(self) -> None:
        chance, artists = self.random, self.artists
        free = [key for key in artists.rows if key not in artists.busy]
        absent = [key for key in KEYS if key not in artists.rows]
        kind = chance.choice(KINDS)
        if kind == "create" and absent:
            artists.create(chance.choice(absent), self._state())
        elif kind == "update" and free:
            artists.update(chance.choice(free), self._state())
        elif kind == "delete" and free:
            artists.delete(chance.choice(free))
        elif kind == "rename" and free and absent:
            artists.rename(chance.choice(free), chance.choice(absent))
        elif kind == "open" and free:
            artists.begin_update(chance.choice(free), self._state())
        elif kind == "end":
            artists.end_updates()
        elif kind == "snapshot":
            artists.snapshot()
        elif kind == "again" and free:
            artists.send_again(chance.choice(free))
        elif kind == "truncate":
            artists.truncate()

    def _ingest(self, *, everything: bool) -> None:
        """Partitions are read at their own pace."""
        for partition in range(PARTITIONS):
            count = 10_000 if everything else self.random.choice([0, 2, 8, 1000])
            self.commit(ARTISTS, self.artists.deliver(partition, count))

    def _made(self, uuid: str) -> None:
        """Ingest shows which table stands there."""
        self.ask(
            "insert into bronze.ingest_commits (table_name, commit_id, kafka_topic,"
            " kafka_topic_id, offsets, row_count, quarantined_count, committed_at, kind,"
            f" table_uuid) values ('{ARTISTS}', 0, 'moma.public.artists', 'first', array(),"
            f" 0, 0, current_timestamp(), 'table', '{uuid}')"
        )

    def _rows_of(self, model: str) -> int:
        """A step that gives the rows of a state."""
        return self.ask(
            "select artist_id, artist_name, nationality"
            f" from intermediate.{model} order by artist_id"
        )

    def _state(self) -> State:
        return self.random.choice(NAMES), self.random.choice(NATIONALITIES)
