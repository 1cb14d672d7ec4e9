{% macro change_history(
    changes, stream, key, attributes, track=none, ignore_null_updates=false
) -%}
    {%- set increment = begin_increment(settings=captured_settings(stream)) -%}
    {%- do assert_names_are_free(key + attributes) -%}
    {%- set texts = texts_of_log(stream, attributes) -%}
    {%- do classify_new_changes(increment, changes, stream, key, texts) -%}
    {%- set truncates = truncates_of(*stream.split(".")) if increment.has_truncates -%}
    {%- if truncates -%}
        {#- Includes earlier ones: a change before a truncate may arrive after it. One without a
            position cannot be ordered; a warning reports it. -#}
        {%- set truncates -%}
    select *
    from (
        {{ truncates }}
    ) as records
    where
        source_position is not null
        and coalesce(_commit_id, 0) <= {{ read_of_stream(increment, stream).to }}
        {%- endset -%}
    {%- endif -%}
    {{ versions_of_changes(
        new_changes_and_current_versions(increment, changes, stream, key, attributes),
        key,
        attributes,
        chosen_attributes("track", track, attributes),
        carried_values(
            attributes,
            texts if increment.has_left_out else [],
            chosen_attributes("ignore_null_updates", ignore_null_updates, attributes),
        ),
        truncates,
        increment.is_in_order,
        increment.reuses_keys,
    ) }}
{%- endmacro %}

{#- Changes go through three steps, each a macro with a common table expression of the same name:
    `ordered_changes`, `distinct_changes`, `row_versions`. Columns that they add begin with an
    underscore. -#}
{% macro versions_of_changes(
    changes,
    key,
    attributes,
    tracked,
    carried,
    truncates=none,
    is_in_order=false,
    reuses_keys=true
) -%}
with

changes as (

    {{ changes }}

),

{{ ordered_changes(key, attributes, truncates, is_in_order) }},

{{ distinct_changes(key, carried, reuses_keys) }},

{{ row_versions(key, attributes, tracked, carried) }}

select * from row_versions
{%- endmacro %}

{#- The columns of every history, in order; the key and the attributes follow the first one. -#}
{% macro columns_of_history() -%}
    {{ return([
        "version_key", "is_deleted", "is_incomplete", "is_current", "valid_from_at",
        "valid_to_at", "valid_from_position", "valid_to_position", "seen_to_position",
        "seen_to_at", "_kafka_topic_id", "_kafka_partition", "_kafka_offset",
        "_kafka_timestamp", "_ingested_at", "_commit_id",
    ]) }}
{%- endmacro %}

{#- Raises an error if a column has the name of one that every history, its staging model or a
    step between them adds. -#}
{% macro assert_names_are_free(columns) -%}
    {%- set taken = columns_of_history() + [
        "record_key", "change_kind", "is_tombstone", "is_snapshot", "source_position",
        "source_committed_at",
    ] -%}
    {%- for column in columns if column in taken or column.startswith("_") -%}
        {{ exceptions.raise_compiler_error(
            this.identifier ~ ": " ~ column ~ " is the name of a column that every history"
            ~ " adds, or begins with an underscore: rename it in the staging model"
        ) }}
    {%- endfor -%}
{%- endmacro %}

{#- The attributes that an option of `change_history` selects. -#}
{% macro chosen_attributes(option, choice, attributes) -%}
    {%- if choice is none or choice is sameas true -%}
        {{ return(attributes) }}
    {%- elif choice is sameas false -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set is_all_but = choice is mapping -%}
    {%- set named = choice.all_but if is_all_but else choice -%}
    {%- for name in named if name not in attributes -%}
        {{ exceptions.raise_compiler_error(
            option ~ " of " ~ this.identifier ~ " names " ~ name
            ~ ", which is not one of its attributes: " ~ attributes | join(", ")
        ) }}
    {%- endfor -%}
    {%- set chosen = [] -%}
    {%- for attribute in attributes if (attribute in named) != is_all_but -%}
        {%- do chosen.append(attribute) -%}
    {%- endfor -%}
    {{ return(chosen) }}
{%- endmacro %}

{#- The text attributes whose unchanged values PostgreSQL may omit from its log (TOAST). A column
    shorter than Debezium's placeholder is never stored out of line. -#}
{% macro texts_of_log(stream, attributes, node=model) -%}
    {%- set texts = [] -%}
    {%- if execute -%}
        {%- set captured = captured_stream(stream).config.meta.ingest.captured -%}
        {%- for attribute in attributes
            if captured.form != "rows" and captured.get("position") != "binlog" -%}
            {%- if kind_of_text(node, attribute) == "long text" -%}
                {%- do texts.append(attribute) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(texts) }}
{%- endmacro %}

{#- For each attribute that a change may omit: the condition that the change has it, and the SQL
    of its value in a distinct change. Debezium writes a placeholder for values that PostgreSQL
    did not log (debezium.io, PostgreSQL connector, "Toasted values"). -#}
{% macro carried_values(attributes, left_out, ignored) -%}
    {%- set carried = {} -%}
    {%- for attribute in attributes if attribute in left_out or attribute in ignored -%}
        {%- set has_value = attribute ~ " <> " ~ left_out_value() -%}
        {%- set filled = "_filled_" ~ attribute -%}
        {%- if attribute not in left_out -%}
            {%- set has_value = attribute ~ " is not null" -%}
        {%- elif attribute not in ignored -%}
            {%- set has_value = "coalesce(" ~ has_value ~ ", true)" -%}
        {%- endif -%}
        {%- do carried.update({attribute: {
            "has_value": "_is_current_version or is_deleted or change_kind <> 'update' or " ~ has_value,
            "value": "nullif(" ~ filled ~ ", " ~ left_out_value() ~ ")"
                if attribute in left_out else filled,
            "may_be_left_out": attribute in left_out,
        }}) -%}
    {%- endfor -%}
    {{ return(carried) }}
{%- endmacro %}

{#- A row's key as a unique text of at most 128 bytes. Tildes escape characters of the values, so
    that hyphens only separate columns. -#}
{% macro key_text(key) -%}
    {%- set parts, texts = [], [] -%}
    {%- for column in key -%}
        {%- if kind_of_text(model, column) -%}
            {%- set text = "replace(cast(" ~ column ~ " as varchar(4096)), '~', '~0')" -%}
            {%- do texts.append(column) -%}
            {%- do parts.append(
                "replace(" ~ text ~ ", '-', '~1')" if key | length > 1 else text
            ) -%}
        {%- else -%}
            {#- The longest is a decimal of 38 digits, with sign and point. -#}
            {%- do parts.append("cast(" ~ column ~ " as varchar(40))") -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set whole = parts | join(" || '-' || ") -%}
    {%- if not texts and key | length <= 3 -%}
        {{ return(whole) }}
    {%- endif -%}
    {{ return(
        "case when octet_length(" ~ whole ~ ") <= 128 then " ~ whole
        ~ " else '~s' || sha2(" ~ whole ~ ", 256) end"
    ) }}
{%- endmacro %}
