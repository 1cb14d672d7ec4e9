"""Topics of their own and a Spark cluster for the fault tests."""

from __future__ import annotations

from tests.python.clusters import master
from tests.python.stack.conftest import feed, new_feed

__all__ = ["feed", "master", "new_feed"]
