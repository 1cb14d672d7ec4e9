{#- Each row of a database shows a rule. A change: row, kind, position, hour (of the transaction),
    partition, offset, commit, name, note, rank. -#}
{%- set changes = [
    ("same", "snapshot", "10", 0, 0, 1, 1, "A", "x", 1),
    ("same", "update", "20", 2, 0, 2, 2, "B", "x", 1),
    ("same", "update", "30", 3, 0, 3, 2, "B", "x", 1),
    ("same", "update", "20", 2, 0, 4, 3, "B", "x", 1),
    ("order", "update", "12", 1, 0, 5, 1, "B", "x", 1),
    ("order", "create", "11", 1, 1, 1, 1, "A", "x", 1),
    ("order", "update", "13", 0, 0, 6, 1, "C", "x", 1),
    ("gone", "create", "10", 0, 0, 1, 1, "A", "x", 1),
    ("gone", "delete", "20", 1, 0, 2, 1, "", "", 0),
    ("gone", "tombstone", none, 2, 0, 3, 1, none, none, none),
    ("gone", "create", "30", 3, 0, 4, 1, none, "x", 2),
    ("lone", "tombstone", none, 4, 0, 1, 1, none, none, none),
    ("back", "tombstone", none, 4, 0, 1, 1, none, none, none),
    ("back", "create", "50", 5, 0, 2, 1, "A", "x", 1),
    ("unknown", "delete", "10", 1, 0, 1, 1, "A", "x", 1),
    ("cut", "create", "10", 0, 0, 1, 1, "A", "x", 1),
    ("cut", "tombstone", none, 1, 0, 2, 1, none, none, none),
    ("resent", "create", "10", 0, 0, 1, 1, "A", "x", 1),
    ("resent", "delete", "20", 1, 0, 2, 1, "", "", 0),
    ("resent", "tombstone", none, 9, 0, 3, 1, none, none, none),
    ("resent", "create", "30", 2, 0, 4, 1, "B", "x", 1),
    ("resent", "delete", "20", 1, 0, 5, 2, "", "", 0),
    ("resent", "tombstone", none, 9, 0, 6, 2, none, none, none),
    ("resent", "tombstone", none, 9, 0, 7, 2, none, none, none),
    ("resent", "create", "30", 2, 0, 8, 2, "B", "x", 1),
    ("shot", "create", "10", 0, 0, 1, 1, "A", "x", 1),
    ("shot", "snapshot", "50", 5, 0, 2, 1, "B", "x", 1),
    ("shot", "update", "30", 3, 0, 3, 1, "B", "x", 1),
    ("shot", "update", "40", 6, 0, 4, 1, "C", "x", 1),
    ("toast", "create", "10", 0, 0, 1, 1, "A", "long", 1),
    ("toast", "update", "20", 1, 0, 2, 1, "B", "left out", 1),
    ("toast", "update", "30", 2, 0, 3, 1, "B", none, 1),
    ("toast", "update", "40", 3, 0, 4, 1, "C", "left out", 1),
    ("moved", "create", "10", 0, 0, 1, 1, "A", "left out", 1),
    ("moved", "update", "20", 1, 0, 2, 1, "B", "left out", 1),
    ("moved", "update", "30", 2, 0, 3, 1, "B", "known", 1),
    ("kept", "create", "10", 0, 0, 1, 1, "A", "x", 1),
    ("kept", "update", "20", 1, 0, 2, 1, none, "x", 1),
    ("kept", "update", "30", 2, 0, 3, 1, "B", "x", 7),
    ("kept", "update", "40", 3, 0, 4, 1, "B", "x", 8),
    ("tied", "create", "10", 0, 0, 1, 1, "A", "x", 1),
    ("tied", "update", "20", 1, 0, 2, 1, "B", "x", 1),
    ("tied", "update", "20", 1, 0, 3, 2, "C", "x", 1),
    ("ended", "create", "10", 0, 0, 1, 1, "A", "x", 1),
    ("ended", "delete", "20", 1, 0, 2, 1, "Z", "z", 9),
    ("ended", "update", "30", 2, 0, 3, 1, none, "left out", 2),
    ("twice", "snapshot", "50", 5, 0, 1, 1, "A", "x", 1),
    ("twice", "update", "40", 6, 0, 2, 1, "B", "x", 1),
    ("twice", "snapshot", "70", 7, 0, 3, 2, "B", "x", 1),
    ("twice", "update", "40", 6, 0, 4, 2, "B", "x", 1),
    ("anew", "snapshot", "50", 5, 0, 1, 1, "A", "x", 1),
    ("anew", "tombstone", none, 6, 0, 2, 1, none, none, none),
    ("anew", "create", "40", 6, 0, 3, 1, "B", "x", 1),
    ("filled", "update", "10", 1, 0, 1, 1, "A", "left out", 1),
    ("filled", "update", "20", 2, 0, 2, 1, "A", none, 1),
    ("taken", "create", "10", 1, 0, 1, 1, "A", "x", 1),
    ("taken", "create", "20", 2, 0, 2, 1, "B", "x", 1),
    ("taken", "delete", "30", 2, 0, 3, 1, "A", "x", 1),
    ("taken", "tombstone", none, 3, 0, 4, 1, none, none, none),
    ("passing", "create", "20", 2, 0, 1, 1, "A", "x", 1),
    ("passing", "delete", "30", 2, 0, 2, 1, "A", "x", 1),
    ("passing", "tombstone", none, 3, 0, 3, 1, none, none, none),
    ("known", "current", "20", 1, 0, 1, 1, "A", "x", 1),
    ("known", "update", "20", 1, 0, 1, 1, "Z", "x", 1),
    ("known", "update", "30", 2, 0, 2, 2, "B", "x", 1),
] -%}
{#- Of a truncated table; the truncate was sent twice. -#}
{%- set changes_around_truncate = [
    ("emptied", "create", "10", 0, 0, 1, 1, "A", "x", 1),
    ("emptied", "create", "70", 8, 0, 9, 1, "B", "x", 1),
    ("absent", "create", "10", 0, 0, 1, 1, "A", "x", 1),
    ("absent", "delete", "20", 1, 0, 2, 1, "", "", 0),
    ("later", "create", "70", 8, 0, 9, 1, "A", "x", 1),
    ("full", "current", "20", 1, 0, 1, 1, "A", "x", 1),
] -%}
{%- set truncates = [("60", 7, 5, 3), ("60", 7, 6, 4)] -%}
{#- A version: its key, its validity, the commit that it began with, name, note, rank, then
    d(eleted) and i(ncomplete). -#}
{%- set versions = [
    ("same-10", 0, 2, 1, "A", "x", 1, ""),
    ("same-20c", 2, none, 3, "B", "x", 1, ""),
    ("order-11c", 1, 1, 1, "A", "x", 1, ""),
    ("order-12c", 1, 1, 1, "B", "x", 1, ""),
    ("order-13c", 1, none, 1, "C", "x", 1, ""),
    ("gone-10c", 0, 1, 1, "A", "x", 1, ""),
    ("gone-20c", 1, 3, 1, "A", "x", 1, "d"),
    ("gone-30c", 3, none, 1, none, "x", 2, ""),
    ("lone-", 4, none, 1, none, none, none, "di"),
    ("back-", 4, 5, 1, none, none, none, "di"),
    ("back-50c", 5, none, 1, "A", "x", 1, ""),
    ("unknown-10c", 1, none, 1, none, none, none, "di"),
    ("cut-10c", 0, 1, 1, "A", "x", 1, ""),
    ("cut-10cb", 1, none, 1, "A", "x", 1, "d"),
    ("resent-10c", 0, 1, 1, "A", "x", 1, ""),
    ("resent-20c", 1, 2, 2, "A", "x", 1, "d"),
    ("resent-30c", 2, none, 2, "B", "x", 1, ""),
    ("shot-10c", 0, 3, 1, "A", "x", 1, ""),
    ("shot-30c", 3, 6, 1, "B", "x", 1, ""),
    ("shot-50s40", 6, none, 1, "C", "x", 1, ""),
    ("toast-10c", 0, 1, 1, "A", "long", 1, ""),
    ("toast-20c", 1, 2, 1, "B", "long", 1, ""),
    ("toast-30c", 2, 3, 1, "B", none, 1, ""),
    ("toast-40c", 3, none, 1, "C", none, 1, ""),
    ("moved-10c", 0, 1, 1, "A", none, 1, "i"),
    ("moved-20c", 1, 2, 1, "B", none, 1, "i"),
    ("moved-30c", 2, none, 1, "B", "known", 1, ""),
    ("kept-10c", 0, 2, 1, "A", "x", 1, ""),
    ("kept-30c", 2, none, 1, "B", "x", 8, ""),
    ("tied-10c", 0, 1, 1, "A", "x", 1, ""),
    ("tied-20c", 1, none, 2, "C", "x", 1, ""),
    ("ended-10c", 0, 1, 1, "A", "x", 1, ""),
    ("ended-20c", 1, 2, 1, "A", "x", 1, "d"),
    ("ended-30c", 2, none, 1, none, none, 2, "i"),
    ("twice-50", 5, 6, 1, "A", "x", 1, ""),
    ("twice-50s40", 6, none, 2, "B", "x", 1, ""),
    ("anew-50", 5, 6, 1, "A", "x", 1, ""),
    ("anew-50b", 6, 6, 1, "A", "x", 1, "d"),
    ("anew-50s40", 6, none, 1, "B", "x", 1, ""),
    ("filled-10c", 1, none, 1, "A", none, 1, ""),
    ("taken-10c", 1, 2, 1, "A", "x", 1, ""),
    ("taken-20c", 2, none, 1, "B", "x", 1, ""),
    ("passing-20c", 2, 2, 1, "A", "x", 1, ""),
    ("passing-30c", 2, none, 1, "A", "x", 1, "d"),
    ("known-known", 1, 2, 1, "A", "x", 1, ""),
    ("known-30c", 2, none, 2, "B", "x", 1, ""),
    ("emptied-10c", 0, 7, 1, "A", "x", 1, ""),
    ("emptied-60c", 7, 8, 4, "A", "x", 1, "d"),
    ("emptied-70c", 8, none, 1, "B", "x", 1, ""),
    ("absent-10c", 0, 1, 1, "A", "x", 1, ""),
    ("absent-20c", 1, none, 1, "A", "x", 1, "d"),
    ("later-70c", 8, none, 1, "A", "x", 1, ""),
    ("full-known", 1, 7, 1, "A", "x", 1, ""),
    ("full-60c", 7, none, 4, "A", "x", 1, "d"),
] -%}
{%- set rows, rows_around_truncate, truncate_rows, expected = [], [], [], [] -%}
{%- for row, kind, position, hour, partition, offset, commit, name, note, rank
    in changes + changes_around_truncate -%}
    {%- set is_known = kind == "current" -%}
    {%- set moment = "cast('2026-01-01 0" ~ hour ~ ":00:00' as timestamp)" -%}
    {%- set texts = {
        "name": name,
        "note": "__debezium_unavailable_value" if note == "left out" else note,
        "source_position": none if is_known else position,
        "version_key": row ~ "-known" if is_known else none,
        "seen_to_position": position ~ "c" if is_known else none,
        "valid_from_position": position ~ "c" if is_known else none,
        "change_kind": kind,
        "_kafka_topic_id": "T",
    } -%}
    {%- set values = {
        "row_name": "'" ~ row ~ "'",
        "rank": "cast(" ~ (rank if rank is not none else "null") ~ " as integer)",
        "is_deleted": kind in ["delete", "tombstone"],
        "is_tombstone": kind == "tombstone",
        "is_snapshot": kind == "snapshot",
        "_is_current_version": is_known,
        "is_incomplete": "false",
        "source_committed_at": moment,
        "valid_from_at": moment if is_known else "cast(null as timestamp)",
        "seen_to_at": moment if is_known else "cast(null as timestamp)",
        "_kafka_partition": partition,
        "_kafka_offset": offset,
        "_kafka_timestamp": moment,
        "_ingested_at": moment,
        "_commit_id": "cast(" ~ commit ~ " as bigint)",
    } -%}
    {%- for column, text in texts.items() -%}
        {%- set literal = "'" ~ text ~ "'" if text is not none else "null" -%}
        {%- do values.update({column: "cast(" ~ literal ~ " as varchar(64))"}) -%}
    {%- endfor -%}
    {%- do (
        rows if loop.index <= changes | length else rows_around_truncate
    ).append(values) -%}
{%- endfor -%}
{%- for position, hour, offset, commit in truncates -%}
    {%- set moment = "cast('2026-01-01 0" ~ hour ~ ":00:00' as timestamp)" -%}
    {%- do truncate_rows.append({
        "source_position": "cast('" ~ position ~ "' as varchar(64))",
        "source_committed_at": moment,
        "_kafka_topic_id": "cast('T' as varchar(64))",
        "_kafka_partition": 0,
        "_kafka_offset": offset,
        "_kafka_timestamp": moment,
        "_ingested_at": moment,
        "_commit_id": "cast(" ~ commit ~ " as bigint)",
    }) -%}
{%- endfor -%}
{%- for key, begin, end, commit, name, note, rank, flags in versions -%}
    {%- do expected.append({
        "version": "'" ~ key ~ " " ~ begin ~ " " ~ (end if end is not none else "-")
            ~ " " ~ commit ~ " " ~ (name if name is not none else "-")
            ~ " " ~ (note if note is not none else "-")
            ~ " " ~ (rank if rank is not none else "-") ~ " " ~ (flags or "-") ~ "'"
    }) -%}
{%- endfor -%}

with

expected as (

    {{ value_rows(expected) }}

),

histories as (

    select * from (
        {{ versions_of_changes(
            value_rows(rows),
            key=["row_name"],
            attributes=["name", "note", "rank"],
            tracked=["name", "note"],
            carried=carried_values(["name", "note", "rank"], ["note"], ["name"]),
        ) }}
    ) as versions
    union all
    select * from (
        {{ versions_of_changes(
            value_rows(rows_around_truncate),
            key=["row_name"],
            attributes=["name", "note", "rank"],
            tracked=["name", "note", "rank"],
            carried={},
            truncates=value_rows(truncate_rows),
        ) }}
    ) as emptied_versions

),

actual as (

    select
        version_key
        || ' ' || cast(extract(hour from valid_from_at) as varchar(2))
        || ' ' || coalesce(cast(extract(hour from valid_to_at) as varchar(2)), '-')
        || ' ' || cast(_commit_id as varchar(9))
        || ' ' || coalesce(name, '-')
        || ' ' || coalesce(note, '-')
        || ' ' || coalesce(cast(rank as varchar(9)), '-')
        || ' ' || case
            when is_deleted and is_incomplete then 'di'
            when is_deleted then 'd'
            when is_incomplete then 'i'
            else '-'
        end as version
    from histories

)

select
    expected.version as expected_version,
    actual.version as actual_version
from expected
full outer join actual
    on expected.version = actual.version
where
    expected.version is null
    or actual.version is null
