"""A real browser, and what the pages in it asked for and complained of."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Response, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on PATH: install one, like `apt-get install chromium`"
)


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """Chromium, which resolves no name but this machine's."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
        )
        yield opened
        opened.close()


@dataclass
class Watched:
    """A page of a browser.

    Attributes:
        page: The browser's page.
        asked: Addresses of every request, with what follows the host unquoted.
        complaints: Errors of scripts and lines of the console, without the refused requests.
        refused: Addresses that were not answered well.
    """

    page: Page
    asked: list[str] = field(default_factory=list, kw_only=True)
    complaints: list[str] = field(default_factory=list, kw_only=True)
    refused: list[str] = field(default_factory=list, kw_only=True)

    def __post_init__(self) -> None:
        self.page.on("request", lambda asked: self.asked.append(unquote(asked.url)))
        self.page.on("requestfailed", lambda asked: self._refuse(asked.url))
        self.page.on("response", self._answered)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._said)

    def _refuse(self, url: str) -> None:
        self.refused.append(unquote(url))

    def _answered(self, answer: Response) -> None:
        if not answer.ok:
            self._refuse(answer.url)

    def _said(self, line: ConsoleMessage) -> None:
        # Which address was refused is known from the answer.
        is_answer = line.text.startswith("Failed to load resource")
        if line.type in {"error", "warning"} and not is_answer:
            self.complaints.append(line.text)
