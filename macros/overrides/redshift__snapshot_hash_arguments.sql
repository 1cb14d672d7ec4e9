{#- Mends snapshots on Redshift, where a text without a length has 256 bytes: keys that differ
    behind them would be one. -#}
{% macro redshift__snapshot_hash_arguments(args) -%}
    md5(
        {%- for arg in args %}
        coalesce(cast({{ arg }} as varchar(65535)), '')
        {{- " || '|' ||" if not loop.last }}
        {%- endfor %}
    )
{%- endmacro %}
