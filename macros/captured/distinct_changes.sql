{#- Step 2: for each position the record that was read last, with `_since`, when its values become
    valid, and the last position and time of its row. A value that a change omits is carried
    forward from the last change that has it, in `_filled_<attribute>`; if no change has it, the
    change `_is_incomplete`. `reuses_keys`: a transaction may reuse a key before it is free. -#}
{% macro distinct_changes(key, carried, reuses_keys=true) -%}
{%- set of_row = "partition by " ~ key | join(", ") -%}
{%- set unknown = ["is_incomplete"] -%}
{%- for attribute in carried if carried[attribute].may_be_left_out -%}
    {%- do unknown.append(
        "coalesce(_filled_" ~ attribute ~ " = " ~ left_out_value() ~ ", false)"
    ) -%}
{%- endfor -%}
{%- set in_order -%}
{{ of_row }}
                order by
                    _position, _commit_id, _kafka_topic_id, _kafka_partition, _kafka_offset
{%- endset -%}
-- Step 2 of 3: one change per position.
unseen_changes as (

    select *
    from (
        select
            *,
            max(seen_to_position) over ({{ of_row }}) as _known_to_position
        from ordered_changes
    ) as known_changes
    -- Changes that a concurrent run has applied are in the current version.
    where
        _is_current_version
        or _known_to_position is null
        or _position > _known_to_position

),

single_changes as (

    select *
    from (
        select
            *,
            lead(_position) over (
                {{ in_order }}
            ) as _next_position,
            -- Clocks may run backwards; the order of changes does not.
            max(_changed_at) over (
                {{ in_order }}
                rows between unbounded preceding and current row
            ) as _since,
            max(_position) over ({{ of_row }}) as _row_position,
            max(_changed_at) over ({{ of_row }}) as _row_at
        from unseen_changes
    ) as followed_changes
    where _next_position is null or _next_position <> _position

),
{%- if reuses_keys %}

{{ changes_of_the_row(key) }},
{%- endif %}

numbered_values as (

    select
        *
        {%- for attribute in carried %},
        sum(case when {{ carried[attribute].has_value }} then 1 else 0 end) over (
            {{ of_row }}
            order by _position
            rows between unbounded preceding and current row
        ) as _value_of_{{ attribute }}
        {%- endfor %}
    from {{ "changes_of_the_row" if reuses_keys else "single_changes" }}

),

filled_values as (

    select
        *
        {%- for attribute in carried %},
        -- A delete has no values: changes after it do not inherit any.
        first_value({{ attribute }}) over (
            {{ of_row }}, _value_of_{{ attribute }}, is_deleted
            order by _position
            rows between unbounded preceding and unbounded following
        ) as _filled_{{ attribute }}
        {%- endfor %}
    from numbered_values

),

distinct_changes as (

    select
        *,
        {{ unknown | join("\n            or ") }} as _is_incomplete
    from filled_values

)
{%- endmacro %}

{#- Common table expressions of `distinct_changes`: the changes without deletes of another row
    that had the same key before. With `set id = id + 1` a row gets a key before the other row has
    left it: the delete of the other row does not delete the new one. Whether a row with the key
    existed before a transaction follows from the transaction, which leaves one or none, or from
    the change before it. -#}
{% macro changes_of_the_row(key) -%}
{%- set of_row = "partition by " ~ key | join(", ") -%}
{%- set of_transaction -%}
{{ of_row }}, _kafka_topic_id, _kafka_partition, _is_in_transaction, _changed_at
{%- endset -%}
{%- set until_now = "rows between unbounded preceding and current row" -%}
transactions as (

    select
        *,
        sum(_more_rows) over (
            {{ of_transaction }}
        ) as _more_rows_of_all,
        first_value(change_kind) over (
            {{ of_transaction }}
            order by _position
            {{ until_now }}
        ) as _first_kind,
        sum(_more_rows) over (
            {{ of_transaction }}
            order by _position
            {{ until_now }}
        ) as _more_rows_so_far
    from (
        select
            *,
            change_kind in ('create', 'update', 'delete') as _is_in_transaction,
            case change_kind
                when 'create' then 1
                when 'delete' then -1
                else 0
            end as _more_rows,
            lag(is_deleted) over ({{ of_row }} order by _position) as _is_behind_delete
        from single_changes
    ) as counted_changes

),

known_rows as (

    select
        *,
        -- The transaction creates the row first and leaves the number of rows unchanged.
        case
            when
                _is_in_transaction and _more_rows_of_all = 0 and _first_kind = 'create'
                then max(_was_there) over (
                    {{ of_row }}
                    order by _position
                    rows between unbounded preceding and 1 preceding
                )
            when _more_rows_of_all <= 0 then '1'
            else '0'
        end as _was_there_before
    from (
        select
            *,
            -- Whether the row exists after the change, if known without earlier changes.
            case
                when not _is_in_transaction and not is_deleted then _position || '1'
                when change_kind = 'tombstone' and _is_behind_delete then null
                when not _is_in_transaction then _position || '0'
                when _more_rows_of_all > 0 then _position || '1'
                when _more_rows_of_all < 0 then _position || '0'
                when _first_kind <> 'create' then _position || '1'
            end as _was_there
        from transactions
    ) as rows_behind

),

deletes_of_another as (

    select
        *,
        coalesce(
            change_kind = 'delete'
            and _more_rows_so_far
            + case when _was_there_before like '%1' then 1 else 0 end > 0,
            false
        ) as _is_of_another
    from known_rows

),

changes_of_the_row as (

    select *
    from (
        select
            *,
            coalesce(
                change_kind = 'tombstone'
                and lag(_is_of_another) over ({{ of_row }} order by _position),
                false
            ) as _is_behind_another
        from deletes_of_another
    ) as followed_deletes
    where not _is_of_another and not _is_behind_another

)
{%- endmacro %}
