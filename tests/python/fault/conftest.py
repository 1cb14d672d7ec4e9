"""Topics of their own for the fault tests, as the stack tests have them."""

from __future__ import annotations

from tests.python.stack.conftest import feed, new_feed

__all__ = ["feed", "new_feed"]
