"""What the page of the first hour shows of commands is compared without what differs each time."""

from __future__ import annotations

from tests.python.typed_pages import FIRST_HOUR, blocks, lasting

DBT = """\
10:00:01  1 of 2 START hook: millrace.on-run-start.0 .... [RUN]
10:00:02  1 of 2 OK hook: millrace.on-run-start.0 ....... [\x1b[32mOK\x1b[0m in 0.01s]
10:00:03  1 of 3 START sql view model staging.b ......... [RUN]
10:00:04  1 of 3 OK created sql view model staging.b .... [\x1b[32mOK\x1b[0m in 0.25s]
10:00:05  2 of 3 PASS a_test_with_a_name_that_fills_its_line  [\x1b[32mPASS\x1b[0m in 1.02s]
10:00:06  Done. PASS=3 WARN=0 ERROR=0 SKIP=0 NO-OP=0 TOTAL=3
"""


def test_every_command_of_the_page_shows_what_it_printed() -> None:
    there = blocks(FIRST_HOUR.read_text())

    assert there
    for block, following in zip(there, [*there[1:], None], strict=True):
        if block.kind == "sh":
            assert following is not None
            assert following.kind == "text", block.text


def test_times_ports_and_the_order_of_nodes_may_differ() -> None:
    other = DBT.replace("0.25s", "9.99s").replace("10:00", "23:59")

    assert lasting(DBT) == lasting(other)
    assert lasting(DBT) == [
        "OK created sql view model staging.b OK",
        "PASS a_test_with_a_name_that_fills_its_line PASS",
        "Done. PASS=3 WARN=0 ERROR=0 SKIP=0 NO-OP=0 TOTAL=3",
    ]
    assert lasting("started  kafka  127.0.0.1:1  pid 2  log a\n") == lasting(
        "started  kafka  127.0.0.1:19092  pid 77  log .sandbox/logs/kafka.log\n"
    )
    assert lasting("3 of 3 rows in 1.2 s\n") == lasting("3 of 3 rows in 0.4 s\n")


def test_what_was_counted_may_not_differ() -> None:
    assert lasting("3 of 3 rows in 1.2 s\n") != lasting("2 of 3 rows in 1.2 s\n")
    assert lasting(DBT) != lasting(DBT.replace("PASS a_", "FAIL a_"))
    assert lasting(f"{DBT}1 row\n") != lasting(f"{DBT}2 row\n")
    batch = '{"rows": 12, "seconds": 1.5}'
    assert lasting(batch) == lasting(batch.replace("1.5", "2.25"))
    assert lasting(batch) != lasting(batch.replace("12", "11"))
