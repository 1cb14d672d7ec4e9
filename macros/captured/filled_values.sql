{#- Changes are counted anew from each that says a value: the first of those with one number
    has it. Where that one leaves it out too, nobody knows the value. -#}
{% macro filled_values(key, attributes, kept) -%}
{%- set keys = key | join(", ") -%}
valued as (

    select
        *
        {%- for attribute, condition in kept.items() %},
        sum(case when {{ condition.says }} then 1 else 0 end) over (
            partition by {{ keys }}
            order by place, order_position
            rows between unbounded preceding and current row
        ) as value_of_{{ attribute }}
        {%- endfor %}
    from unique_changes

),

filled as (

    select
        {{ keys }},
        {%- for attribute in attributes %}
        {%- if attribute not in kept %}
        {{ attribute }},
        {%- elif kept[attribute].may_be_left_out %}
        nullif(
            {{ first_of_value(keys, attribute) }},
            {{ left_out_value() }}
        ) as {{ attribute }},
        {%- else %}
        {{ first_of_value(keys, attribute) }} as {{ attribute }},
        {%- endif %}
        {%- endfor %}
        {%- set conditions = [] %}
        {%- for attribute, condition in kept.items() if condition.may_be_left_out %}
        {%- do conditions.append(
            first_of_value(keys, attribute) ~ " = " ~ left_out_value()
        ) %}
        {%- endfor %}
        {%- if conditions %}
        coalesce({{ conditions | join("\n            or ") }}, false)
            or (was_held and is_incomplete) as is_incomplete,
        {%- else %}
        is_incomplete,
        {%- endif %}
        {{ columns_carried(["is_incomplete"]) }}
    from valued

),
{% endmacro %}

{#- A delete says nothing of its row: what comes behind it begins without it. -#}
{% macro first_of_value(keys, attribute) -%}
    first_value({{ attribute }}) over (
            partition by {{ keys }}, value_of_{{ attribute }}, is_deleted
            order by place, order_position
            rows between unbounded preceding and unbounded following
        )
{%- endmacro %}

{#- What goes along with the key and the attributes from step to step. -#}
{% macro columns_carried(without=[]) -%}
    {{ return(
        [
            "version_key", "was_held", "is_deleted", "is_incomplete", "place",
            "order_position", "newest_position", "since", "valid_from_position",
            "_kafka_topic_id", "_kafka_partition", "_kafka_offset", "_kafka_timestamp", "_ingested_at",
            "_commit_id",
        ] | reject("in", without) | join(",\n        ")
    ) }}
{%- endmacro %}
