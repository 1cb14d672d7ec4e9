"""Models that nobody should write, rendered beside the project's own."""

from __future__ import annotations

from pathlib import Path

from tests.python.render.rendering import Engine

FOLDER = Path("models/bad_models")
_SEED = '{{ ref("sales_regions") }}'
# Each with who must find it, and a part of what is said of it.
BAD_MODELS: dict[str, tuple[str, set[tuple[Engine, str]], str]] = {
    "unknown_function": (
        f"select soundex_of(country) as sound from {_SEED}",
        {("spark", "functions"), ("redshift", "refusals")},
        "soundex_of",
    ),
    "function_of_spark": (
        f"select unix_seconds(current_date) as second from {_SEED}",
        {("redshift", "refusals")},
        "the function unix_seconds",
    ),
    "function_of_redshift": (
        f"select len(country) as length from {_SEED}",
        {("spark", "functions")},
        "the function len",
    ),
    "syntax_of_redshift": (
        f"select country from {_SEED} qualify row_number() over (order by country) = 1",
        {("spark", "parser")},
        "Syntax error",
    ),
    "syntax_of_spark": (
        f"select country from {_SEED} where country rlike 'x'",
        {("redshift", "refusals"), ("redshift", "sqlfluff")},
        "rlike",
    ),
    "branch_of_an_increment": (
        "{{ config(materialized='incremental') }} select country from "
        + _SEED
        + "{% if is_incremental() %} where country rlike 'x' {% endif %}",
        {("redshift", "refusals"), ("redshift", "sqlfluff")},
        "rlike",
    ),
}


def add_bad_models(project: Path) -> None:
    """Put them into a copy of the project, to be rendered with it."""
    (project / FOLDER).mkdir()
    for name, (sql, _, _) in BAD_MODELS.items():
        (project / FOLDER / f"{name}.sql").write_text(sql)
