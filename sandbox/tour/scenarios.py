"""Scenarios of `sandbox demo`: events of two generators, or the ticket shop's databases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.databases.known import TICKIT as SHOP
from sandbox.services.stack import GROUPS, SERVICES
from sandbox.streams import STREAMS

TOP_ROWS = 5


@dataclass(frozen=True)
class Top:
    """A table at the end of the report.

    Attributes:
        title: What it shows.
        stream: The stream that it needs; without it the table is omitted.
        query: The SQL query.
    """

    title: str
    stream: str
    query: str


@dataclass(frozen=True)
class Scenario:
    """A scenario of the demo.

    Attributes:
        name: The argument of `sandbox demo`.
        sent: Name of its third step.
        streams: Streams whose records are counted.
        services: Arguments of `sandbox up`; empty starts the default services.
        ingest: Additional arguments of `spark-ingest run --once`.
        group: The group of models to build, with its upstream nodes; None builds all.
        tops: Tables at the end of the report.
        hints: Commands to try next.
    """

    name: str
    sent: str
    streams: tuple[str, ...]
    tops: tuple[Top, ...]
    hints: Mapping[str, str]
    services: tuple[str, ...] = ()
    ingest: tuple[str, ...] = ()
    group: str | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps, in order."""
        return ("parts", "services", self.sent, "ingest", "dbt build", "docs")


EVENTS = Scenario(
    name="events",
    sent="events",
    streams=tuple(STREAMS),
    tops=(
        Top(
            "The largest regional sales windows (marts.fct_regional_sales_windows, UTC):",
            "pagila.sales",
            "select sales_region, window_start_at, window_end_at, sales_amount,"
            " order_count from marts.fct_regional_sales_windows"
            f" order by sales_amount desc, window_start_at limit {TOP_ROWS}",
        ),
        Top(
            "The products that sold most (marts.rpt_product_sales):",
            "smoothies.purchases",
            "select product_id, product_name, sales_amount, quantity, purchase_count"
            " from marts.rpt_product_sales left join ("
            "select product_id, product_name from marts.dim_products where is_current"
            ") using (product_id)"
            f" order by sales_amount desc, product_id limit {TOP_ROWS}",
        ),
    ),
    hints={
        "sandbox live": "events to marts all the time, until Ctrl-C",
        "sandbox up": "start broker and registry again",
        "sandbox produce pagila --rate 50/s": "a live stream, until Ctrl-C",
        "spark-ingest run --every 10s": "land it while it comes",
        "spark-ingest verify": "prove that nothing is lost or doubled",
        "dbt build": "all models and tests",
        'sandbox sql "select * from marts.rpt_region_sales order by sales_amount desc"': "",
    },
)


def _captured_here() -> tuple[str, ...]:
    """The shop's tables, without those of servers that this platform does not support."""
    return tuple(
        f"tickit.{table.name}"
        for database in SHOP
        if SERVICES[database.engine].lacks_platform() is None
        for table in database.tables
    )


TICKETS = Scenario(
    name="tickit",
    sent="changes",
    streams=_captured_here(),
    services=("kafka", "registry", *GROUPS["cdc"]),
    ingest=("tickit",),
    group="tickets",
    tops=(
        Top(
            "The events that grossed most (marts.fct_ticket_sales):",
            "tickit.sale",
            "select event_id, max(dim_events.event_name) as event_name,"
            " max(dim_events.venue_city) as venue_city,"
            " sum(tickets_amount) as sales_amount,"
            " sum(sold_ticket_count) as ticket_count"
            " from marts.fct_ticket_sales"
            " left join marts.dim_events using (event_id) group by event_id"
            f" order by sales_amount desc, event_id limit {TOP_ROWS}",
        ),
        Top(
            "The sellers who sold for most (marts.fct_ticket_sales):",
            "tickit.sale",
            "select seller_id, max(dim_ticket_users.username) as username,"
            " sum(tickets_amount) as sales_amount,"
            " sum(earnings_amount) as earnings_amount, count(*) as sale_count"
            " from marts.fct_ticket_sales left join marts.dim_ticket_users"
            " on seller_id = user_id group by seller_id"
            f" order by sales_amount desc, seller_id limit {TOP_ROWS}",
        ),
    ),
    hints={
        "sandbox up cdc": "start databases and connectors again",
        "sandbox produce tickit --changes 500": "let things happen in the shop",
        "spark-ingest run tickit --once": "land what changed",
        "dbt build --select +group:tickets": "increments of what changed",
        "spark-ingest verify tickit": "prove that nothing is lost or doubled",
        'sandbox sql "select * from marts.rpt_ticket_sales_by_category'
        ' order by sales_amount desc"': "",
    },
)

SCENARIOS: Mapping[str, Scenario] = {one.name: one for one in (EVENTS, TICKETS)}
"""By their names."""
