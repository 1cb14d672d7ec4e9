{#- Fixes snapshots on Redshift, where a text without a length has 256 bytes: keys that differ
    after them would be equal. -#}
{% macro redshift__snapshot_hash_arguments(args) -%}
    md5(
        {%- for arg in args %}
        coalesce(cast({{ arg }} as varchar(65535)), '')
        {{- " || '|' ||" if not loop.last }}
        {%- endfor %}
    )
{%- endmacro %}
