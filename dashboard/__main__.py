"""Start the dashboard on 127.0.0.1, until Ctrl-C.

python -m dashboard --port 8501
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from dashboard.lake import LakeIsEmpty, open_catalog

_APP = Path(__file__).parent / "app.py"
# No usage statistics, and no browser is opened.
_SETTINGS = {
    "server.address": "127.0.0.1",
    "server.headless": "true",
    "browser.gatherUsageStats": "false",
    "client.toolbarMode": "minimal",
    "global.developmentMode": "false",
}


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(
        prog="python -m dashboard",
        description="Show the marts of the lake in a browser, read-only, until Ctrl-C.",
        epilog="The lake is the sandbox's (SANDBOX_HOME), or the catalog `lake` of PyIceberg's "
        "configuration, such as PYICEBERG_CATALOG__LAKE__URI.",
    )
    parser.add_argument(
        "--port", type=int, default=8501, help="on 127.0.0.1 (default: %(default)s)"
    )
    given = parser.parse_args()
    try:
        open_catalog()
    except LakeIsEmpty as error:
        sys.exit(str(error))
    settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
    # Streamlit runs the app by its file: the package must be on the path.
    os.environ["PYTHONPATH"] = str(_APP.parents[1])
    print(f"Dashboard: http://127.0.0.1:{given.port} (Ctrl-C ends it)", flush=True)
    command = [sys.executable, "-m", "streamlit", "run", str(_APP), *settings]
    # Replace this process, so that only Streamlit gets Ctrl-C.
    os.execv(sys.executable, [*command, f"--server.port={given.port}"])


if __name__ == "__main__":
    main()
