{#- Replaces the rows of keys that changed, in one commit: on Spark by one `merge`, on Redshift by
    a delete and an insert. A key that changed and has no row any more goes. -#}
{% macro replace_changed_rows(relation, fresh, columns, key, changed) -%}
    {{ return(adapter.dispatch("replace_changed_rows")(
        relation, fresh, columns, key, changed
    )) }}
{%- endmacro %}

{#- The adapter sends both statements in one transaction. -#}
{% macro default__replace_changed_rows(relation, fresh, columns, key, changed) -%}
    delete from {{ relation }}
    where
        {{ key }} in (select {{ key }} from {{ fresh }})
        or {{ key }} in ({{ changed }});

    insert into {{ relation }} ({{ columns | join(", ") }})
    select {{ columns | join(", ") }}
    from {{ fresh }}
{%- endmacro %}

{#- One commit of the table. A row that changed and is not given any more is gone. -#}
{% macro spark__replace_changed_rows(relation, fresh, columns, key, changed) -%}
    merge into {{ relation }} as kept
    using (
        select
            coalesce(given.{{ key }}, changed.{{ key }}) as changed_key,
            given.*
        from ({{ changed }}) as changed
        full outer join {{ fresh }} as given
            on changed.{{ key }} = given.{{ key }}
    ) as fresh
    on kept.{{ key }} = fresh.changed_key
    when matched and fresh.{{ key }} is null then delete
    when matched then update set
        {%- for column in columns %}
        {{ column }} = fresh.{{ column }}{{ "," if not loop.last }}
        {%- endfor %}
    when not matched and fresh.{{ key }} is not null then insert ({{ columns | join(", ") }})
    values (
        {%- for column in columns %}fresh.{{ column }}{{ ", " if not loop.last }}{% endfor %})
{%- endmacro %}
