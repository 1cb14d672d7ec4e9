{#- Names the rows: `dbt show --limit 100 --select` and its name. -#}
{% for stream in captured_histories() -%}
    {{ rows_without_snapshot(stream) }}
    {{- "\nunion all\n" if not loop.last }}
{%- endfor %}
