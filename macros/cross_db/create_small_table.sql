{#- A statement that creates a small table if it does not exist. -#}
{% macro create_small_table(relation, columns, partition) -%}
    {{ return(adapter.dispatch("create_small_table")(relation, columns, partition)) }}
{%- endmacro %}

{% macro default__create_small_table(relation, columns, partition) -%}
    create table if not exists {{ relation }} (
        {%- for name, type in columns.items() %}
        {{ name }} {{ type }}{{ "," if not loop.last }}
        {%- endfor %}
    )
{%- endmacro %}

{% macro spark__create_small_table(relation, columns, partition) -%}
    {{ default__create_small_table(relation, columns, partition) }}
    using iceberg
    partitioned by ({{ partition }})
    tblproperties (
        'write.distribution-mode' = 'none',
        'write.metadata.delete-after-commit.enabled' = 'true',
        'write.metadata.previous-versions-max' = '5'
    )
{%- endmacro %}
