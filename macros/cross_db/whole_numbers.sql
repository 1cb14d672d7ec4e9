{#- A query of the whole numbers from 0 up to, but without, `count`: column
    `whole_number`, an integer. -#}
{% macro whole_numbers(count) -%}
    {{ adapter.dispatch("whole_numbers")(count) }}
{%- endmacro %}

{% macro spark__whole_numbers(count) -%}
    select cast(id as int) as whole_number from range({{ count }})
{%- endmacro %}

{#- Redshift's generate_series runs on its leader only and joins nothing: count with
    digits instead, as many places as the number needs. -#}
{% macro default__whole_numbers(count) -%}
    {%- set places = ((count - 1) | string | length) -%}
    select
        {% for place in range(places) -%}
        digits_{{ place }}.digit * {{ 10 ** place }}{{ " + " if not loop.last }}
        {%- endfor %} as whole_number
    from
        {% for place in range(places) -%}
        {{ "cross join " if not loop.first -}}
        (
            {%- for digit in range(10) %}
            select {{ digit }} as digit{{ " union all" if not loop.last }}
            {%- endfor %}
        ) as digits_{{ place }}
        {% endfor -%}
    where
        {% for place in range(places) -%}
        digits_{{ place }}.digit * {{ 10 ** place }}{{ " + " if not loop.last }}
        {%- endfor %} < {{ count }}
{%- endmacro %}
