{#- A statement that replaces all rows of a table that match a condition with those of a query,
    which must match it, too. -#}
{% macro replace_rows(relation, condition, query) -%}
    {{ return(adapter.dispatch("replace_rows")(relation, condition, query)) }}
{%- endmacro %}

{#- The adapter runs both statements in one transaction. -#}
{% macro default__replace_rows(relation, condition, query) -%}
    delete from {{ relation }}
    where {{ condition }};

    insert into {{ relation }}
    {{ query }}
{%- endmacro %}

{#- One commit of the table. Iceberg does not check for concurrent changes of the same rows, and
    SQL cannot enable that: increments check, see `assert_no_concurrent_build`. -#}
{% macro spark__replace_rows(relation, condition, query) -%}
    insert into {{ relation }} replace where {{ condition }}
    {{ query }}
{%- endmacro %}
