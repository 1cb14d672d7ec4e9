{#- Asks once what the new changes are, and records in the increment what the current versions do
    not suffice for. `late`: a condition of rows of which all changes are read again. `is_in_order`:
    no snapshot overtook a change, and no row took a key before another one had left it; what
    places such changes is left out of the statement. `is_emptied`: a truncate deletes every row; a
    late one may change any version, and all are rebuilt. A log that restarted stops the build. -#}
{% macro look_at_new_changes(increment, changes, stream, key) -%}
    {%- set read = read_of_stream(increment, stream) -%}
    {%- do increment.update({
        "late": none, "is_emptied": false, "is_in_order": false, "key": key_text(key),
    }) -%}
    {%- set is_new = read.after < read.to or (increment.is_everything and read.to > 0) -%}
    {%- if asks_the_lake() and is_new -%}
        {%- set late, restarted = [], [] -%}
        {%- set was_everything = increment.is_everything -%}
        {#- Of more the whole history is rebuilt: a statement that names them is no cheaper. What
            else is found are two kinds of truncates, those and changes without a place, and
            restarts, which stop. -#}
        {%- set most_late = 2000 -%}
        {%- for row in lake_rows(
            findings_of_changes(increment, changes, stream, key)
            ~ " limit " ~ (most_late + 5),
            [["late", "1", none], ["late", "O'2", none]],
        ) -%}
            {%- if row[0] == "late" -%}
                {%- do late.append(sql_literal(row[1] | string)) -%}
            {%- elif row[0] == "truncate" -%}
                {%- do increment.update({"is_emptied": true}) -%}
            {%- elif row[0] == "late truncate" -%}
                {%- do increment.update({"is_everything": true}) -%}
            {%- elif "without place" in row[0] -%}
                {#- They stay in bronze and, but for truncates, in staging, whose test names them
                    too. -#}
                {%- set is_change = row[0] == "without place" -%}
                {%- do exceptions.warn(
                    this.identifier ~ " leaves out " ~ row[1] ~ " "
                    ~ ("changes" if is_change else "TRUNCATEs") ~ " of " ~ stream
                    ~ " that have no " ~ ("key or no " if is_change)
                    ~ "position in the log, like record_key " ~ row[2]
                    ~ ": correct `key` and `position` of the source, or what writes the topic"
                ) -%}
            {%- else -%}
                {%- do restarted.append(row) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if restarted and writes_rows() -%}
            {%- do refuse_restarted_log(stream, restarted) -%}
        {%- endif -%}
        {%- if late | length > most_late -%}
            {%- do increment.update({"is_everything": true}) -%}
        {%- elif late and not was_everything -%}
            {%- do increment.update({"late": "in (" ~ late | sort | join(", ") ~ ")"}) -%}
        {%- endif -%}
        {%- do increment.update({
            "is_in_order": not late and increment.is_everything == was_everything,
        }) -%}
    {%- endif -%}
{%- endmacro %}

{#- A row for each row of the database that needs more, with what and since when. Late is a change
    that lies before one that was seen, a tombstone that nothing new comes before, any change of a
    row with a value that nobody knows, a change that a snapshot overtook and a delete behind a
    create of its transaction. A full build asks for restarts and the last two. -#}
{% macro findings_of_changes(increment, changes, stream, key) -%}
    {%- set keys = key | join(", ") -%}
    {%- set truncates = truncates_of(*stream.split(".")) -%}
    {%- set over_those_before -%}
        over (
                    partition by {{ keys }}, _kafka_topic_id, _kafka_partition
                    order by _kafka_offset, _commit_id
                    rows between unbounded preceding and 1 preceding
                )
    {%- endset -%}
    {%- set first_record -%}
        min(
            _kafka_topic_id || '-' || cast(_kafka_partition as varchar(11))
            || '-' || cast(_kafka_offset as varchar(20))
        )
    {%- endset -%}
    select
        case when max(is_restart) = 1 then 'restart' else 'late' end as finding,
        row_name,
        min(case when is_restart = 1 then cast(_kafka_timestamp as varchar(32)) end)
            as happened_at
    from (
        select
            fresh.row_name,
            fresh._kafka_timestamp,
            case when {{ is_restart(stream, increment.is_everything) }} then 1 else 0 end
                as is_restart,
            case
                when not fresh.is_snapshot and fresh.place < fresh.snapshot_before then 1
                {%- if may_take_keys(stream) %}
                when
                    fresh.change_kind = 'delete'
                    and fresh.source_committed_at <= {{ "fresh.created_before"
                        if increment.is_everything
                        else "greatest(fresh.created_before, known.seen_to_at)" }}
                    then 1
                {%- endif %}
                {%- if not increment.is_everything %}
                when known.seen_to_position is null then 0
                when known.is_incomplete or fresh.place <= known.seen_to_position then 1
                when fresh.is_tombstone and fresh.first_offset is null then 1
                when fresh.is_tombstone and fresh.first_offset > fresh._kafka_offset then 1
                {%- endif %}
                else 0
            end as is_late
        from (
            select
                *,
                max(place) {{ over_those_before }} as place_before,
                max(case when not is_snapshot then place end) {{ over_those_before }} as change_before,
                max(case when is_snapshot then place end) {{ over_those_before }} as snapshot_before,
                {%- if may_take_keys(stream) %}
                max(case when change_kind = 'create' then source_committed_at end) {{ over_those_before }} as created_before,
                {%- endif %}
                max(case when not is_tombstone then source_committed_at end) {{ over_those_before }} as committed_before
            from (
                select
                    {{ keys }},
                    {{ key_text(key) }} as row_name,
                    case
                        when is_tombstone then null
                        when is_snapshot then source_position
                        else source_position || 'c'
                    end as place,
                    min(case when not is_tombstone then _kafka_offset end) over (
                        partition by {{ keys }}, _kafka_topic_id, _kafka_partition
                    ) as first_offset,
                    change_kind,
                    is_tombstone,
                    is_snapshot,
                    source_committed_at,
                    _kafka_topic_id,
                    _kafka_partition,
                    _kafka_offset,
                    _kafka_timestamp,
                    _commit_id
                from {{ queryable(changes) }}
                where
                    {{ new_rows(increment, stream) }}
                    and {{ has_place(key) }}
            ) as fresh_changes
        ) as fresh
        {%- if not increment.is_everything %}
        left outer join (
            select
                {{ keys }},
                valid_from_position,
                seen_to_position,
                seen_to_at,
                is_incomplete,
                _kafka_timestamp
            from {{ this }}
            where
                is_current
                and {{ has_new_changes(increment, queryable(changes), stream, key) | indent(16) }}
        ) as known
            on
                {%- for column in key %}
                {{ "and " if not loop.first }}fresh.{{ column }} = known.{{ column }}
                {%- endfor %}
        {%- endif %}
    ) as looked_at
    where is_restart = 1 or is_late = 1
    group by row_name
    union all
    select
        'without place' as finding,
        cast(count(*) as varchar(128)) as row_name,
        {{ first_record }} as happened_at
    from {{ queryable(changes) }}
    where
        {{ new_rows(increment, stream) }}
        and not ({{ has_place(key) }})
    having count(*) > 0
    {%- if truncates %}
    union all
    select
        finding,
        cast(count(*) as varchar(128)) as row_name,
        {{ first_record }} as happened_at
    from (
        select
            truncates.*,
            case
                when truncates.source_position is null then 'truncate without place'
                {%- if not increment.is_everything %}
                when truncates.source_position || 'c' <= known.seen_to_position
                    then 'late truncate'
                {%- endif %}
                else 'truncate'
            end as finding
        from (
            {{ truncates }}
        ) as truncates
        {%- if not increment.is_everything %}
        cross join (
            select max(seen_to_position) as seen_to_position
            from {{ this }}
            where is_current
        ) as known
        {%- endif %}
        where {{ new_rows(increment, stream) }}
    ) as found_truncates
    group by finding
    {%- endif %}
    order by finding desc
{%- endmacro %}

{#- Whether a transaction of the table's database may give a row a key before another one has left
    it, as PostgreSQL's deferrable keys allow. A database that checks each row as it is written has
    no key taken before it is free. -#}
{% macro may_take_keys(stream) -%}
    {%- if not execute -%}
        {{ return(true) }}
    {%- endif -%}
    {%- set captured = captured_stream(stream).config.meta.ingest.captured -%}
    {{ return(captured.get("position", "lsn") == "lsn") }}
{%- endmacro %}
