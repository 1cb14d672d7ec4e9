{#- A change of a column that is not tracked makes no version: the one that holds takes it. -#}
{% macro newest_untracked(key, attributes, tracked) -%}
{%- set keys = key | join(", ") -%}
counted as (

    select
        *,
        sum(is_change) over (
            partition by {{ keys }}
            order by place, order_position
            rows between unbounded preceding and current row
        ) as version_number
    from spans

),

newest as (

    select
        {{ keys }},
        {%- for attribute in attributes %}
        {%- if attribute in tracked %}
        {{ attribute }},
        {%- else %}
        case
            when is_deleted then {{ attribute }}
            else first_value({{ attribute }}) over (
                partition by {{ keys }}, version_number
                order by place desc, order_position desc
                rows between unbounded preceding and unbounded following
            )
        end as {{ attribute }},
        {%- endif %}
        {%- endfor %}
        is_change,
        {{ columns_carried() }}
    from counted

),
{% endmacro %}
