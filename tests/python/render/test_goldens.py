"""What the macros of ``macros/cross_db`` render is what the golden files say.

Fails when a macro of `cross_db` renders something else than its golden file.
"""

from __future__ import annotations

import pytest

from sandbox.settings import PROJECT
from tests.python.render.conftest import Rendered
from tests.python.render.goldens import GOLDEN, REWRITE, calls, golden_files
from tests.python.render.rendering import ENGINES, Engine


def test_every_macro_of_both_engines_has_a_call() -> None:
    macros = {path.stem for path in (PROJECT / "macros/cross_db").glob("*.sql")}

    assert set(calls()) == macros


@pytest.mark.parametrize("engine", ENGINES)
def test_macros_render_what_their_golden_files_say(rendered: Rendered, engine: Engine) -> None:
    kept = {path.name: path.read_text() for path in GOLDEN.glob(f"*.{engine}.sql")}

    made = golden_files(engine, rendered.texts[engine])

    assert made == kept, f"if that is meant: {REWRITE}"


def test_no_golden_file_is_left_over() -> None:
    named = {path.name.split(".")[0] for path in GOLDEN.glob("*.*.sql")}

    assert named - set(calls()) == set()
