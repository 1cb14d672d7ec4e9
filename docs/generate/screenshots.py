"""Pictures of the dashboard for README and docs, from what the sandbox's lake holds.

    make demo && make test-dashboard      # installs what this needs
    python -m docs.generate.screenshots

Needs a Chromium on PATH.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

from playwright.sync_api import ViewportSize, expect, sync_playwright

from sandbox.processes.process import accepts
from sandbox.settings import PROJECT

FOLDER = PROJECT / "docs/dashboards"
PAGES = ("rentals", "smoothies", "pipeline")
PORT = 8599
_SIZE: ViewportSize = {"width": 1280, "height": 800}
_START_SECONDS = 60
# Charts grow into their place.
_SETTLED_MS = 3000


def main() -> None:
    """The program."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium on PATH: install one, like `apt-get install chromium`")
    command = [sys.executable, "-m", "dashboard", "--port", str(PORT)]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL) as program:
        try:
            _wait()
            FOLDER.mkdir(exist_ok=True)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium)
                page = browser.new_page(viewport=_SIZE)
                for name in PAGES:
                    page.goto(f"http://127.0.0.1:{PORT}/{name}")
                    expect(page.get_by_text("shown in")).to_be_visible(
                        timeout=_START_SECONDS * 1000
                    )
                    page.wait_for_timeout(_SETTLED_MS)
                    page.screenshot(path=FOLDER / f"{name}.png")
                browser.close()
        finally:
            program.terminate()


def _wait() -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not accepts(PORT):
        if time.monotonic() > deadline:
            sys.exit(f"nothing answers on 127.0.0.1:{PORT}")
        time.sleep(0.2)


if __name__ == "__main__":
    main()
