{% macro whole_numbers(count) -%}
    {{ adapter.dispatch("whole_numbers")(count) }}
{%- endmacro %}

{% macro spark__whole_numbers(count) -%}
    select cast(id as int) as whole_number from range({{ count }})
{%- endmacro %}

{#- Redshift's generate_series runs on the leader node only and cannot be joined: this counts with
    as many binary digits as needed. -#}
{% macro default__whole_numbers(count) -%}
    {%- set places = [] -%}
    {%- set number = [] -%}
    {%- for place in range(31) if place == 0 or 2 ** place < count -%}
        {%- do places.append(place) -%}
        {%- do number.append("bit_" ~ place ~ ".digit * " ~ 2 ** place) -%}
    {%- endfor -%}
    select {{ number | join(" + ") }} as whole_number
    from
        {% for place in places -%}
        {{ "cross join " if not loop.first -}}
        (select 0 as digit union all select 1 as digit) as bit_{{ place }}
        {% endfor -%}
    where {{ number | join(" + ") }} < {{ count }}
{%- endmacro %}
