{#- Positions in the log of a database that was restored, reset (`RESET MASTER`) or replaced sort
    after all positions of the log before. The variable `log_restarts` lists the instants, in
    Kafka's time and in UTC. -#}
{% macro position_across_restarts(database, position, moment) -%}
    {%- set restarts = [] -%}
    {%- for instant in var("log_restarts").get(database) or [] -%}
        {%- if not modules.re.fullmatch(
            "\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d([.]\\d+)?Z", instant | string
        ) -%}
            {{ exceptions.raise_compiler_error(
                "the variable log_restarts has " ~ instant
                ~ ": write instants in UTC, like '2026-03-01T12:00:00Z', with quotes"
            ) }}
        {%- endif -%}
        {%- do restarts.append(instant[:-1] | replace("T", " ")) -%}
    {%- endfor -%}
    {%- if restarts -%}
        cast(
            case
                {%- for instant in restarts | sort | reverse %}
                when {{ moment }} >= cast('{{ instant }}' as timestamp)
                    then '{{ "%03d" | format(loop.revindex) }}/'
                {%- endfor %}
                else '000/'
            end || {{ position }} as varchar(72)
        )
    {%- else -%}
        {{ position }}
    {%- endif -%}
{%- endmacro %}

{#- The same for rows of many streams, by a column with the stream's name. -#}
{% macro position_across_restarts_of_streams(stream, position, moment) -%}
    case
        {%- for database, restarts in var("log_restarts").items() if restarts %}
        when {{ database_of_stream(stream) }} = '{{ database }}' then {{
            position_across_restarts(database, position, moment)
        }}
        {%- endfor %}
        when true then {{ position }}
    end
{%- endmacro %}

{#- A condition for changes that only a restarted log has: a change lies before an earlier change
    of the same row, though it was committed later. The exception is a PostgreSQL transaction that
    was open during a snapshot. Records that are sent again have their old time, and those sent
    before the current version, through another partition, belong to the same log. -#}
{% macro is_restart(stream, is_full_refresh) -%}
    {%- set source = captured_stream(stream) -%}
    {%- set position = source.config.meta.ingest.captured.get("position", "lsn") -%}
    {%- set database, restarts = captured_database(source), var("log_restarts") -%}
    {%- set is_one_log = database in restarts and not restarts[database] -%}
    {%- if position not in ["lsn", "binlog"] or is_one_log -%}
        1 = 0
    {%- else -%}
        {%- set committed_before = "new_changes.committed_before" if is_full_refresh
            else "greatest(new_changes.committed_before, current_versions.seen_to_at)" -%}
        (
            new_changes.source_committed_at > {{ committed_before }}
            {%- if position == "lsn" %}
            and new_changes.log_position < case
                when new_changes.is_snapshot then new_changes.position_before else new_changes.change_before
            end
            {%- else %}
            and new_changes.log_position < new_changes.position_before
            {%- endif %}
        )
        {%- if not is_full_refresh %}
        or (
            new_changes.source_committed_at > current_versions.seen_to_at
            and new_changes._kafka_timestamp >= current_versions._kafka_timestamp
            {%- if position == "lsn" %}
            -- A position with a c is that of a change, not of a snapshot.
            and (
                (
                    new_changes.log_position < current_versions.seen_to_position
                    and (new_changes.is_snapshot or current_versions.seen_to_position like '%c%')
                )
                or (
                    new_changes.log_position < current_versions.valid_from_position
                    and (new_changes.is_snapshot or current_versions.valid_from_position like '%c%')
                )
            )
            {%- else %}
            and new_changes.log_position < current_versions.seen_to_position
            {%- endif %}
        )
        {%- endif %}
    {%- endif -%}
{%- endmacro %}

{#- Raises an error that shows what to add to `log_restarts`. -#}
{% macro raise_restarted_log_error(stream, restarted) -%}
    {%- set database = captured_database(captured_stream(stream)) -%}
    {%- set first = restarted | map(attribute=2) | min -%}
    {%- set streams = [] -%}
    {%- for source in graph.sources.values()
        if "captured" in source.config.meta.get("ingest", {})
        and captured_database(source) == database -%}
        {%- do streams.append("source:" ~ source.source_name ~ (
            "" if database == source.source_name else "." ~ source.name
        ) ~ "+") -%}
    {%- endfor -%}
    {{ raise_error(
        "the log of the database " ~ database ~ " restarted by " ~ first
        ~ " UTC (" ~ restarted | length ~ " rows of " ~ stream ~ ", like "
        ~ (restarted[0][1] | string)[:40] ~ ", changed after others and lie before them in it)"
        ~ ". With the instant in `log_restarts`, by docs/runbooks/restarted-log.md",
        "dbt build --full-refresh --select " ~ streams | unique | sort | join(" "),
    ) }}
{%- endmacro %}

{#- The database of the stream in a column. While dbt parses and in unit tests the graph has no
    sources: each database is then named like its source. -#}
{% macro database_of_stream(stream) -%}
    {%- set source_name = "split_part(" ~ stream ~ ", '.', 1)" -%}
    {%- set databases = {} -%}
    {%- for source in (graph.get("sources") or {}).values()
        if "captured" in source.config.meta.get("ingest", {})
        and captured_database(source) != source.source_name -%}
        {%- do databases.update({
            source.source_name ~ "." ~ source.name: captured_database(source)
        }) -%}
    {%- endfor -%}
    {%- if not databases -%}
        {{ return(source_name) }}
    {%- endif -%}
    case
            {%- for name, database in databases.items() | sort %}
            when {{ stream }} = '{{ name }}' then '{{ database }}'
            {%- endfor %}
            else {{ source_name }}
        end
{%- endmacro %}
