{#- Classifies the new changes with one query, and all changes with another where the whole
    history is rebuilt. Records in the increment where the current versions do not suffice.
    `keys_to_rebuild`: a condition for keys of which all changes are read again. `is_in_order`:
    the statement needs no SQL for changes that a snapshot overtook.
    `reuses_keys`: it needs SQL for keys that a transaction reused before they were free.
    `is_truncated`: a truncate deletes every row; a late one may change any version, and all are
    rebuilt. `has_truncates`: there is a truncate among all changes so far. `has_left_out`: the
    statement reads changes that omit values of `texts`. A log that restarted raises an error. -#}
{% macro classify_new_changes(increment, changes, stream, key, texts) -%}
    {%- set read = read_of_stream(increment, stream) -%}
    {%- do increment.update({
        "keys_to_rebuild": none, "is_truncated": false, "is_in_order": false,
        "reuses_keys": may_reuse_keys(stream) and not queries_lake(), "key": key_text(key),
        "has_truncates": not queries_lake() or (
            not increment.is_full_refresh and may_have_truncates(increment, stream)
        ),
        "has_left_out": not queries_lake(),
    }) -%}
    {%- set is_new = read.after < read.to or (increment.is_full_refresh and read.to > 0) -%}
    {%- if queries_lake() and is_new -%}
        {#- With more keys the whole history is rebuilt: a statement that lists them is no
            cheaper. The other rows are truncates, truncates and changes without a position, keys
            reused early, changes without a finding, and restarts, which raise an error. -#}
        {%- set max_late_keys = 2000 -%}
        {%- set found = {} -%}
        {%- for row in lake_rows(
            findings_of_changes(increment, changes, stream, key, texts)
            ~ " limit " ~ (max_late_keys + 6),
            [
                ["reused", none, none, 0], ["other", none, none, 1],
                ["late", "1", none, 0], ["late", "O'2", none, 0],
            ],
        ) -%}
            {%- do found.setdefault(row[0], []).append(row) -%}
            {%- if row[3] -%}
                {%- do increment.update({"has_left_out": true}) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if "restart" in found and writes_rows() -%}
            {%- do raise_restarted_log_error(stream, found["restart"]) -%}
        {%- endif -%}
        {%- set late_keys = [] -%}
        {%- for row in found.get("late", []) -%}
            {%- do late_keys.append(sql_literal(row[1] | string)) -%}
        {%- endfor -%}
        {%- if not increment.is_full_refresh and (
            late_keys | length > max_late_keys
            or ("truncate" in found and is_truncated_late(increment, stream))
        ) -%}
            {#- Findings about all changes spare the statement what none of them needs. -#}
            {%- do increment.update({"is_full_refresh": true}) -%}
            {{ return(classify_new_changes(increment, changes, stream, key, texts)) }}
        {%- endif -%}
        {#- They stay in bronze and, except truncates, in staging, whose test reports them, too. -#}
        {%- for finding, what in {
            "no position": "changes", "truncate, no position": "TRUNCATEs"
        }.items() if finding in found -%}
            {%- set row = found[finding][0] -%}
            {%- do exceptions.warn(
                this.identifier ~ " leaves out " ~ row[1] ~ " " ~ what ~ " of " ~ stream
                ~ " that have no " ~ ("key or no " if finding == "no position")
                ~ "position in the log, like record_key " ~ row[2]
                ~ ": correct `key` and `position` of the source, or what writes the topic"
            ) -%}
        {%- endfor -%}
        {#- With keys to rebuild the statement reads changes that the query did not. -#}
        {%- set rebuilds_keys = late_keys | length > 0 and not increment.is_full_refresh -%}
        {%- do increment.update({
            "keys_to_rebuild": (
                "in (" ~ late_keys | sort | join(", ") ~ ")" if rebuilds_keys else none
            ),
            "is_truncated": "truncate" in found,
            "has_truncates": increment.has_truncates or "truncate" in found,
            "is_in_order": not late_keys,
            "reuses_keys": "reused" in found or (rebuilds_keys and may_reuse_keys(stream)),
            "has_left_out": increment.has_left_out or rebuilds_keys,
        }) -%}
    {%- endif -%}
{%- endmacro %}

{#- Whether an earlier commit may have a truncate: the read point of the last increment says. -#}
{% macro may_have_truncates(increment, stream) -%}
    {%- for read in own_reads(increment) if read.source_name == stream -%}
        {{ return(read.has_truncates) }}
    {%- endfor -%}
    {{ return(true) }}
{%- endmacro %}

{#- Whether a new truncate lies before a change that the history has applied. -#}
{% macro is_truncated_late(increment, stream) -%}
    {%- set late = lake_rows(
        "select count(*) as late_count from (" ~ truncates_of(*stream.split(".")) ~ ") as truncates"
        ~ " where " ~ new_rows(increment, stream) ~ " and source_position || 'c' <= ("
        ~ "select max(seen_to_position) as seen_to_position from " ~ this ~ " where is_current)",
        [[0]],
    )[0][0] -%}
    {{ return(late | int > 0) }}
{%- endmacro %}

{#- One row for each key that needs more than its current version, with the finding, its time, and
    whether a change omits a value (1 or 0). All other changes with a finding, or without a value,
    have one row for each finding.
    Late are a change before the last applied position, a tombstone without a preceding new
    change, any change of an incomplete row, a change that a snapshot overtook, and a delete in a
    transaction that the current version has seen. A delete after a new create in the same
    transaction may be of another row that had the key (`reused`). -#}
{% macro findings_of_changes(increment, changes, stream, key, texts) -%}
    {%- set keys = key | join(", ") -%}
    {%- set truncates = truncates_of(*stream.split(".")) -%}
    {%- set of_row -%}
        partition by {{ keys }}, is_placed, _kafka_topic_id, _kafka_partition
    {%- endset -%}
    {%- set over_preceding -%}
        over (
                    {{ of_row }}
                    order by _kafka_offset, _commit_id
                    rows between unbounded preceding and 1 preceding
                )
    {%- endset -%}
    {%- set is_delete = "new_changes.change_kind = 'delete' and new_changes.source_committed_at <=" -%}
    {%- set found_row = "case when classified.finding in ('late', 'restart') then classified.row_name end" -%}
    {%- set first_record -%}
        min(
            _kafka_topic_id || '-' || cast(_kafka_partition as varchar(11))
            || '-' || cast(_kafka_offset as varchar(20))
        )
    {%- endset -%}
    select
        classified.finding,
        case
            when classified.finding = 'no position' then cast(count(*) as varchar(128))
            else {{ found_row }}
        end as row_name,
        case classified.finding
            when 'no position' then {{ first_record }}
            when 'restart' then min(cast(classified._kafka_timestamp as varchar(32)))
        end as happened_at,
        max(classified.omits_values) as omits_values
    from (
        select
            new_changes.row_name,
            new_changes.omits_values,
            new_changes._kafka_topic_id,
            new_changes._kafka_partition,
            new_changes._kafka_offset,
            new_changes._kafka_timestamp,
            case
                when not new_changes.is_placed then 'no position'
                when {{ is_restart(stream, increment.is_full_refresh) }} then 'restart'
                when not new_changes.is_snapshot and new_changes.log_position < new_changes.snapshot_before then 'late'
                {%- if not increment.is_full_refresh %}
                when current_versions.is_incomplete or new_changes.log_position <= current_versions.seen_to_position then 'late'
                when
                    current_versions.seen_to_position is not null and new_changes.is_tombstone
                    and coalesce(new_changes.first_offset > new_changes._kafka_offset, true)
                    then 'late'
                {%- endif %}
                {%- if may_reuse_keys(stream) %}
                {%- if not increment.is_full_refresh %}
                when {{ is_delete }} current_versions.seen_to_at then 'late'
                {%- endif %}
                when {{ is_delete }} new_changes.created_before then 'reused'
                {%- endif %}
                else 'other'
            end as finding
        from (
            select
                *,
                max(log_position) {{ over_preceding }} as position_before,
                max(case when not is_snapshot then log_position end) {{ over_preceding }} as change_before,
                max(case when is_snapshot then log_position end) {{ over_preceding }} as snapshot_before,
                min(case when not is_tombstone then _kafka_offset end) over ({{ of_row }}) as first_offset,
                {%- if may_reuse_keys(stream) %}
                max(case when change_kind = 'create' then source_committed_at end) {{ over_preceding }} as created_before,
                {%- endif %}
                max(case when not is_tombstone then source_committed_at end) {{ over_preceding }} as committed_before
            from (
                select
                    {{ keys }},
                    {{ key_text(key) }} as row_name,
                    case
                        when is_tombstone then null
                        when is_snapshot then source_position
                        else source_position || 'c'
                    end as log_position,
                    {{ has_key_and_position(key) }} as is_placed,
                    {%- for text in texts %}
                    {{ "case when" if loop.first else "or" }} {{ text }} = {{ left_out_value() }}
                    {{- " then 1 else 0 end as omits_values," if loop.last }}
                    {%- else %}
                    0 as omits_values,
                    {%- endfor %}
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
                where {{ new_rows(increment, stream) }}
            ) as keyed_changes
        ) as new_changes
        {%- if not increment.is_full_refresh %}
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
        ) as current_versions
            on
                {%- for column in key %}
                {{ "and " if not loop.first }}new_changes.{{ column }} = current_versions.{{ column }}
                {%- endfor %}
        {%- endif %}
    ) as classified
    where classified.finding <> 'other' or classified.omits_values = 1
    group by classified.finding, {{ found_row }}
    {%- if truncates %}
    union all
    select
        case when source_position is null then 'truncate, no position' else 'truncate' end
            as finding,
        cast(count(*) as varchar(128)) as row_name,
        {{ first_record }} as happened_at,
        0 as omits_values
    from (
        {{ truncates }}
    ) as truncates
    where {{ new_rows(increment, stream) }}
    group by source_position is null
    {%- endif %}
    order by finding desc, omits_values desc
{%- endmacro %}

{#- Whether a transaction of the database may reuse a key before it is free, as PostgreSQL's
    deferrable constraints allow. Other databases check each row as it is written. -#}
{% macro may_reuse_keys(stream) -%}
    {%- if not execute -%}
        {{ return(true) }}
    {%- endif -%}
    {%- set captured = captured_stream(stream).config.meta.ingest.captured -%}
    {{ return(captured.get("position", "lsn") == "lsn") }}
{%- endmacro %}
