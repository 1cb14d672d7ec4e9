{#- A statement that replaces all rows of a table for which a condition holds by those of a query,
    which must hold for it too. -#}
{% macro replace_rows(relation, condition, query) -%}
    {{ return(adapter.dispatch("replace_rows")(relation, condition, query)) }}
{%- endmacro %}

{#- The adapter sends both statements in one transaction. -#}
{% macro default__replace_rows(relation, condition, query) -%}
    delete from {{ relation }}
    where {{ condition }};

    insert into {{ relation }}
    {{ query }}
{%- endmacro %}

{#- One commit of the table. Iceberg does not look whether another changed the same rows: SQL
    cannot ask it to. Increments find out by themselves, see `assert_no_concurrent_build`. -#}
{% macro spark__replace_rows(relation, condition, query) -%}
    insert into {{ relation }} replace where {{ condition }}
    {{ query }}
{%- endmacro %}
