"""What was measured of a mart's publications, and how the docs show it."""

from __future__ import annotations

from pathlib import Path

from bench.report.page import PAGE, about_text
from bench.report.results import About, Kept, read_kept
from docs.generate.parts import markdown, with_parts
from sandbox.settings import PROJECT

RESULTS = PROJECT / "bench/results/publish.json"


class Sent(Kept):
    """Records that were sent together.

    Attributes:
        what: Which.
        records: How many.
        seconds: Until the broker had committed all.
    """

    what: str
    records: int
    seconds: float


class Publications(Kept):
    """The whole measurement.

    Attributes:
        about: When, where and how.
        largest_transaction: Records of the largest transaction.
        sent: In the order in which they were measured; the producer alone is the last.
    """

    about: About
    largest_transaction: int
    sent: list[Sent]


def table(publications: Publications) -> list[str]:
    """One row per publication, and the producer's."""
    return markdown(
        ["what is sent", "records", "seconds", "records/s"],
        (
            [one.what, f"{one.records:,}", f"{one.seconds:.1f}", f"{rate(one):,.0f}"]
            for one in publications.sent
        ),
    )


def rate(sent: Sent) -> float:
    """Records a second."""
    return sent.records / sent.seconds


def with_publish(page: str, publications: Publications) -> str:
    """A page's text with its generated part made from results."""
    largest = (
        f"The largest transaction had {publications.largest_transaction:,} records."
    )
    lines = [*table(publications), "", largest, "", about_text(publications.about)]
    return with_parts(page, {"publish": lines})


def write_page(publications: Publications, page: Path = PAGE) -> None:
    """Write the generated part of the page."""
    page.write_text(with_publish(page.read_text(), publications))


def read_publications(file: Path) -> Publications:
    """Results from their file.

    Raises:
        ConfigurationError: It is missing, or not one.
    """
    return read_kept(file, Publications, "python -m bench.publish")
