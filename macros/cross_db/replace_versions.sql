{#- Replaces the versions of rows that changed, in one commit: on Spark by one `merge`, on Redshift
    by a delete and an insert. -#}
{% macro replace_versions(relation, fresh, columns, key, late) -%}
    {{ return(adapter.dispatch("replace_versions")(relation, fresh, columns, key, late)) }}
{%- endmacro %}

{#- The adapter sends both statements in one transaction. -#}
{% macro default__replace_versions(relation, fresh, columns, key, late) -%}
    delete from {{ relation }}
    where
        version_key in (select version_key from {{ fresh }})
        {%- if late %}
        or {{ key }} {{ late }}
        {%- endif %};

    insert into {{ relation }} ({{ columns | join(", ") }})
    select {{ columns | join(", ") }}
    from {{ fresh }}
{%- endmacro %}

{#- One commit of the table. Only a version that holds is changed, and of late rows any. -#}
{% macro spark__replace_versions(relation, fresh, columns, key, late) -%}
    merge into {{ relation }} as versions
    using {{ fresh }} as fresh
    on
        versions.version_key = fresh.version_key
        {%- if not late %}
        and versions.is_current
        {%- endif %}
    when matched then update set
        {%- for column in columns %}
        {{ column }} = fresh.{{ column }}{{ "," if not loop.last }}
        {%- endfor %}
    when not matched then insert ({{ columns | join(", ") }})
    values (
        {%- for column in columns %}fresh.{{ column }}{{ ", " if not loop.last }}{% endfor %})
    {%- if late %}
    when not matched by source and {{ key }} {{ late }} then delete
    {%- endif %}
{%- endmacro %}
