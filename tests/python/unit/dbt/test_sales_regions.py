"""The region list: what it must hold, and what it must leave to `Unassigned`."""

from __future__ import annotations

import csv
import json

from sandbox.settings import PROJECT

REGIONS = {
    "Africa",
    "Arab States",
    "Asia & Pacific",
    "Europe",
    "Latin America",
    "Middle East",
    "North America",
}


def region_by_country() -> dict[str, str]:
    with (PROJECT / "seeds/sales_regions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    regions = {row["country"]: row["sales_region"] for row in rows}
    assert len(regions) == len(rows), "a country is there twice"
    return regions


def test_the_list_has_the_seven_regions_and_no_other() -> None:
    assert set(region_by_country().values()) == REGIONS


def test_a_country_has_one_region_however_it_is_spelled() -> None:
    regions = region_by_country()

    for one, other in [
        ("Turkey", "Türkiye"),
        ("Russia", "Russian Federation"),
        ("Czechia", "Czech Republic"),
        ("Ivory Coast", "Côte d'Ivoire"),
        ("South Korea", "Korea, Republic of"),
        ("Iran", "Iran, Islamic Republic of"),
        ("Vietnam", "Viet Nam"),
    ]:
        assert regions[one] == regions[other]


def test_names_are_as_people_type_them() -> None:
    for country in region_by_country():
        assert country == " ".join(country.split())
        assert '"' not in country


def test_countries_that_are_no_more_or_never_were_are_not_in_the_list() -> None:
    gone = {"Atlantis", "Czechoslovakia", "USSR", "Yugoslavia", "Unassigned"}

    assert not gone & set(region_by_country())


def test_the_list_knows_nearly_all_sales_of_the_generator_but_not_all() -> None:
    places = json.loads((PROJECT / "sandbox/streams/pagila/places.json").read_text())
    known = region_by_country()
    weights = {place["country"]: place["weight"] for place in places}

    unknown = sum(weight for country, weight in weights.items() if country not in known)

    assert 0 < unknown < 0.05 * sum(weights.values())
