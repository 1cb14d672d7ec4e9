"""The rules of the dbt project can fail: each is broken here once, and must say so.

Fails when a rule of dbt-bouncer or sqlfluff does not find its breach.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sqlfluff.core import FluffConfig, Linter

from sandbox.settings import PROJECT
from tests.python.project_copy import copy_project

BIN = Path(sys.executable).parent
# A file of the project, what stands there, what is put in its place, and the checks of
# dbt-bouncer that must find it.
BREACHES = [
    (
        "models/intermediate/rentals/int_rentals__sales_enriched.sql",
        '{{ ref("stg_pagila__sales") }}',
        '{{ source("pagila", "sales") }} union select * from {{ ref("stg_pagila__sales") }}',
        {
            "check_lineage_source_cannot_be_used",
            "check_model_does_not_directly_join_to_source",
            "check_source_used_by_models_in_same_directory",
            "check_source_used_by_only_one_model",
        },
    ),
    (
        "models/marts/rentals/fct_rental_sales.sql",
        "    from records\n",
        '    from {{ ref("stg_pagila__sales") }} cross join {{ ref("sales_regions") }}\n',
        {
            "check_lineage_permitted_upstream_models",
            "check_lineage_seed_cannot_be_used",
        },
    ),
    (
        "models/marts/rentals/rpt_region_sales.sql",
        "    from sales\n",
        "    from sales -- {{ target.name }}\n    right join marts.x on true; ",
        {"check_model_code_does_not_contain_regexp_pattern"},
    ),
    (
        "models/marts/rentals/rpt_country_sales.sql",
        'select * from {{ ref("fct_rental_sales") }}',
        "select * from marts.fct_rental_sales",
        {
            "check_model_hard_coded_references",
            "check_model_has_no_upstream_dependencies",
        },
    ),
    (
        "macros/streams/sliding_windows.sql",
        "cross join (",
        "lateral view explode (",
        {"check_macro_code_does_not_contain_regexp_pattern"},
    ),
    (
        "dbt_project.yml",
        "+contract: {enforced: true}",
        "+contract: {enforced: false}",
        {"check_model_has_contracts_enforced"},
    ),
    (
        "dbt_project.yml",
        "rentals: {+group: rentals, +meta: {owner: rentals}}",
        "rentals: {+group: rentals, rpt_region_sales: {+materialized: view}}",
        {"check_model_has_meta_keys", "check_model_materialization_permitted"},
    ),
    (
        "models/marts/rentals/fct_rental_sales.yml",
        "One row per sale:",
        "Sales, that is",
        {"check_model_description_contains_regexp_pattern"},
    ),
    (
        "models/marts/rentals/fct_rental_sales.yml",
        "data_type: varchar(256)",
        "data_type: string",
        {"check_model_column_type_complies_to_column_name"},
    ),
    (
        "models/marts/rentals/fct_rental_sales.yml",
        "        data_type: decimal(18,2)",
        "        data_type: decimal(10,2)",
        {"check_model_column_name_complies_to_column_type"},
    ),
    (
        "models/marts/rentals/fct_rental_sales.yml",
        "        description: \"{{ doc('city') }}\"\n",
        "",
        {"check_model_column_description_populated"},
    ),
    (
        "models/marts/rentals/fct_rental_sales.yml",
        "- key_and_required_columns:\n          arguments:\n            key: [payment_id]\n",
        "- required_columns\n",
        {"check_model_has_unique_test"},
    ),
    (
        "models/marts/rentals/rpt_region_sales.yml",
        "        data_type: bigint\n",
        "",
        {"check_model_columns_have_types"},
    ),
    (
        "models/marts/rentals/rpt_region_sales.yml",
        "\nunit_tests:",
        "\nold_unit_tests:",
        {"check_model_has_unit_tests"},
    ),
    (
        "models/marts/rentals/rpt_region_sales.yml",
        "\"{{ doc('sales_amount') }}\"",
        "What the region sold.",
        {"check_column_descriptions_are_consistent"},
    ),
    (
        "models/marts/rentals/rpt_region_sales.yml",
        "key_and_required_columns:\n          arguments:\n            key:",
        "unique_combination:\n          arguments:\n            columns:",
        {"check_model_has_tests_by_name"},
    ),
    (
        "models/staging/pagila/_pagila__sources.yml",
        "              framing: confluent\n",
        "",
        {"check_source_has_meta_keys"},
    ),
    (
        "models/staging/pagila/_pagila__sources.yml",
        """            warn_after: {count: 1, period: day}
            error_after: {count: 7, period: day}
""",
        "            filter: _commit_id > 0\n",
        {"check_source_freshness_populated"},
    ),
    (
        "seeds/sales_regions.yml",
        "        data_type: varchar(32)\n",
        "",
        {"check_seed_columns_have_types"},
    ),
    (
        "models/marts/rentals/_rentals__exposures.yml",
        "      email: rentals@millrace.example\n",
        "",
        {"check_exposure_has_owner"},
    ),
]
MISNAMED = "models/marts/rentals/sales_by_day.sql"
BY_NAME = {
    "check_model_has_properties_file",
    "check_model_names",
    "check_model_property_file_location",
}


def failed_checks(project: Path) -> set[str]:
    """Parse a project and give the checks of dbt-bouncer that it does not pass."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("DBT_")
    }
    parsed = subprocess.run(
        [
            BIN / "dbt",
            "--quiet",
            "parse",
            "--target",
            "lint",
            "--profiles-dir",
            "profiles",
        ],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert parsed.returncode == 0, parsed.stdout + parsed.stderr
    checked = subprocess.run(
        [
            BIN / "dbt-bouncer",
            "run",
            "--output-file",
            "failed.json",
            "--output-only-failures",
        ],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = json.loads((project / "failed.json").read_text())
    names = {re.split(r"[:.]", run["check_run_id"])[0] for run in failed}
    assert (checked.returncode == 0) is (not names), checked.stdout + checked.stderr
    return names


def test_every_rule_that_is_broken_is_found(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    expected = set(BY_NAME)
    for name, there, put, checks in BREACHES:
        file = project / name
        text = file.read_text()
        assert there in text, (name, there)
        file.write_text(text.replace(there, put, 1))
        expected |= checks
    (project / MISNAMED).write_text(
        'select 1 as n from {{ ref("fct_rental_sales") }}\n'
    )

    found = failed_checks(project)

    assert expected - found == set()


@pytest.mark.parametrize(
    ("sql", "rule"),
    [
        ("SELECT payment_id\nfrom sales", "CP01"),
        ("select payment_id p\nfrom sales", "AL02"),
        ("select nvl(payment_id, 0) as payment_id\nfrom sales", "CV09"),
        ("select payment_id::int as payment_id\nfrom sales", "CV11"),
        ("select\n    payment_id\n    , amount\nfrom sales", "LT04"),
        ('select "paid" as word\nfrom sales', "CV10"),
        ("select\n  payment_id,\n  amount\nfrom sales", "LT02"),
        ("select sales.payment_id\nfrom sales join regions on true", "AM05"),
        ("select s.n\nfrom t as s\nright join u as r\n    on s.n = r.n", "CV08"),
        ("select s.n\nfrom t as s\ninner join u as r using (n)", "ST07"),
        ("select n\nfrom t\nwhere n != 1", "CV01"),
        ("select * from sales", "AM04"),
        ("select n\nfrom (select n from t) as s", "ST05"),
    ],
)
def test_sql_out_of_style_is_found(sql: str, rule: str) -> None:
    config = FluffConfig.from_path(str(PROJECT), overrides={"templater": "raw"})

    linted = Linter(config=config).lint_string(sql + "\n")

    assert rule in {violation.rule_code() for violation in linted.get_violations()}
