"""What somebody adds to the project, laid over a copy of it, and the rows that come in there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from sandbox.processes.programs import path_of
from sandbox.settings import PROJECT
from tests.python.project_copy import copy_project

MODELS = {
    "crm_payments": "crm.crm_payments",
    "int_crm__accounts_synced": "intermediate.int_crm__accounts_synced",
    "fct_account_payments": "marts.fct_account_payments",
}
MART = "models/marts/crm/fct_account_payments.sql"
_EARLIER, _LATER = (f"timestamp '2026-01-01 0{hour}:00:00'" for hour in (1, 2))
_ACCOUNT = "account_id integer, country_code varchar(2), _synced_at timestamp"
_PAYMENT = "payment_id integer, account_id integer, amount decimal(18, 2), loaded_at timestamp"
_MOVED = f"country_code = 'FR', _synced_at = {_LATER}"
# Statements that both engines take: who pays, and what they paid.
FIRST = [
    "create schema salesforce",
    "create schema finance",
    f"create table salesforce.accounts ({_ACCOUNT})",
    f"create table finance.payments ({_PAYMENT})",
    f"insert into salesforce.accounts values (1, 'FR', {_EARLIER}), (2, 'DE', {_EARLIER})",
    f"insert into finance.payments values (10, 1, 1.00, {_EARLIER}), (11, 2, 2.00, {_EARLIER})",
]
# One account moves, one is new; one payment is corrected, one is new.
THEN = [
    f"update salesforce.accounts set {_MOVED} where account_id = 2",
    f"insert into salesforce.accounts values (3, 'FR', {_LATER})",
    f"insert into finance.payments values (11, 2, 3.00, {_LATER}), (12, 3, 4.00, {_LATER})",
]
_EARLY, _LATE = "2026-01-01 01:00:00", "2026-01-01 02:00:00"
ROWS = {
    "first": {
        "crm.crm_payments": [("10", "1", "100", _EARLY), ("11", "2", "200", _EARLY)],
        "intermediate.int_crm__accounts_synced": [("1", "FR", _EARLY), ("2", "DE", _EARLY)],
        "marts.fct_account_payments": [
            ("10", "1", "France", "100", _EARLY),
            ("11", "2", "Germany", "200", _EARLY),
        ],
    },
    "then": {
        "crm.crm_payments": [
            ("10", "1", "100", _EARLY),
            ("11", "2", "300", _LATE),
            ("12", "3", "400", _LATE),
        ],
        # Without a key rows are added.
        "intermediate.int_crm__accounts_synced": [
            ("1", "FR", _EARLY),
            ("2", "DE", _EARLY),
            ("2", "FR", _LATE),
            ("3", "FR", _LATE),
        ],
        "marts.fct_account_payments": [
            ("10", "1", "France", "100", _EARLY),
            ("11", "2", "France", "300", _LATE),
            ("12", "3", "France", "400", _LATE),
        ],
    },
}


def adopted_project(into: Path) -> Path:
    """A copy of the project with somebody's own models, and their package installed."""
    project = copy_project(into)
    shutil.copytree(PROJECT / "tests/adopter", project, dirs_exist_ok=True)
    subprocess.run(
        [path_of("dbt"), "--quiet", "deps", "--profiles-dir", "profiles"], cwd=project, check=True
    )
    return project
