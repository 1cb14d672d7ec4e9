{#- Replaces the versions of changed rows in one commit: with `merge` on Spark, with delete and
    insert on Redshift. -#}
{% macro replace_versions(relation, rows, columns, key, keys_to_rebuild) -%}
    {{ return(adapter.dispatch("replace_versions")(relation, rows, columns, key, keys_to_rebuild)) }}
{%- endmacro %}

{#- The adapter runs both statements in one transaction. -#}
{% macro default__replace_versions(relation, rows, columns, key, keys_to_rebuild) -%}
    delete from {{ relation }}
    where
        version_key in (select version_key from {{ rows }})
        {%- if keys_to_rebuild %}
        or {{ key }} {{ keys_to_rebuild }}
        {%- endif %};

    insert into {{ relation }} ({{ columns | join(", ") }})
    select {{ columns | join(", ") }}
    from {{ rows }}
{%- endmacro %}

{#- One commit of the table. Only current versions change, except for keys to rebuild. -#}
{% macro spark__replace_versions(relation, rows, columns, key, keys_to_rebuild) -%}
    merge into {{ relation }} as versions
    using {{ rows }} as updates
    on
        versions.version_key = updates.version_key
        {%- if not keys_to_rebuild %}
        and versions.is_current
        {%- endif %}
    when matched then update set
        {%- for column in columns %}
        {{ column }} = updates.{{ column }}{{ "," if not loop.last }}
        {%- endfor %}
    when not matched then insert ({{ columns | join(", ") }})
    values (
        {%- for column in columns %}updates.{{ column }}{{ ", " if not loop.last }}{% endfor %})
    {%- if keys_to_rebuild %}
    when not matched by source and {{ key }} {{ keys_to_rebuild }} then delete
    {%- endif %}
{%- endmacro %}
