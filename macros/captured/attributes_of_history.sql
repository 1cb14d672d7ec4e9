{#- All columns but the key and those that every history has, as the YAML of the model lists
    them. -#}
{% macro attributes_of_history(key) -%}
    {%- if not execute -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set attributes = [] -%}
    {%- for column in model.columns
        if column not in key and column not in columns_of_history() -%}
        {%- do attributes.append(column) -%}
    {%- endfor -%}
    {{ return(attributes) }}
{%- endmacro %}

{% macro columns_of_history() -%}
    {{ return([
        "version_key", "is_deleted", "is_incomplete", "is_current", "valid_from_at",
        "valid_to_at", "valid_from_position", "valid_to_position", "seen_to_position",
        "_kafka_topic_id", "_kafka_partition", "_kafka_offset", "_kafka_timestamp",
        "_ingested_at", "_commit_id",
    ]) }}
{%- endmacro %}

{#- What an option of `config.meta.ingest.captured` says, as attributes of a history. -#}
{% macro chosen_attributes(stream, attributes, option, when_left_out) -%}
    {%- if not execute -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set said = captured_stream(stream).config.meta.ingest.captured.get(option) -%}
    {%- if said is none -%}
        {{ return(when_left_out) }}
    {%- elif said is sameas true -%}
        {{ return(attributes) }}
    {%- elif said is sameas false -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set named = said.all_but if said is mapping else said -%}
    {%- for name in named if name not in attributes -%}
        {{ exceptions.raise_compiler_error(
            "config.meta.ingest.captured." ~ option ~ " of source " ~ stream ~ " names "
            ~ name ~ ", which is no attribute of " ~ this.identifier ~ ": there are "
            ~ attributes | join(", ")
        ) }}
    {%- endfor -%}
    {{ return(
        (attributes | reject("in", named) | list) if said is mapping
        else (attributes | select("in", named) | list)
    ) }}
{%- endmacro %}

{#- Where a change leaves a value as it was, by attribute: the condition that it says one.
    What Debezium writes for a value that PostgreSQL did not log is the same text always
    (debezium.io, PostgreSQL connector, "Toasted values"). -#}
{% macro kept_values(attributes, left_out, ignored) -%}
    {%- set kept = {} -%}
    {%- for attribute in attributes if attribute in left_out or attribute in ignored -%}
        {%- set says = ["was_held", "is_deleted", "change_kind <> 'update'"] -%}
        {%- if attribute not in left_out -%}
            {%- do says.append(attribute ~ " is not null") -%}
        {%- elif attribute in ignored -%}
            {%- do says.append(attribute ~ " <> " ~ left_out_value()) -%}
        {%- else -%}
            {%- do says.append(
                "coalesce(" ~ attribute ~ " <> " ~ left_out_value() ~ ", true)"
            ) -%}
        {%- endif -%}
        {%- do kept.update({attribute: {
            "says": says | join(" or "), "may_be_left_out": attribute in left_out
        }}) -%}
    {%- endfor -%}
    {{ return(kept) }}
{%- endmacro %}

{% macro left_out_value() -%}
    {{ return("'__debezium_unavailable_value'") }}
{%- endmacro %}
