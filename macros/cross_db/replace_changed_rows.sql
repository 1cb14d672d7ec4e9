{#- Replaces the rows of the changed keys in one commit: with `merge` on Spark, with delete and
    insert on Redshift. A changed key without a new row is deleted. -#}
{% macro replace_changed_rows(relation, rows, columns, key, changed) -%}
    {{ return(adapter.dispatch("replace_changed_rows")(
        relation, rows, columns, key, changed
    )) }}
{%- endmacro %}

{#- The adapter runs both statements in one transaction. -#}
{% macro default__replace_changed_rows(relation, rows, columns, key, changed) -%}
    delete from {{ relation }}
    where
        {{ key }} in (select {{ key }} from {{ rows }})
        or {{ key }} in ({{ changed }});

    insert into {{ relation }} ({{ columns | join(", ") }})
    select {{ columns | join(", ") }}
    from {{ rows }}
{%- endmacro %}

{#- One commit of the table. A changed key without a new row is deleted. -#}
{% macro spark__replace_changed_rows(relation, rows, columns, key, changed) -%}
    merge into {{ relation }} as existing
    using (
        select
            coalesce(new_rows.{{ key }}, changed.{{ key }}) as changed_key,
            new_rows.*
        from ({{ changed }}) as changed
        full outer join {{ rows }} as new_rows
            on changed.{{ key }} = new_rows.{{ key }}
    ) as updates
    on existing.{{ key }} = updates.changed_key
    when matched and updates.{{ key }} is null then delete
    when matched then update set
        {%- for column in columns %}
        {{ column }} = updates.{{ column }}{{ "," if not loop.last }}
        {%- endfor %}
    when not matched and updates.{{ key }} is not null then insert ({{ columns | join(", ") }})
    values (
        {%- for column in columns %}updates.{{ column }}{{ ", " if not loop.last }}{% endfor %})
{%- endmacro %}
