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

{#- One commit of the table, which Iceberg refuses when another changed the same rows. -#}
{% macro spark__replace_rows(relation, condition, query) -%}
    insert into {{ relation }} replace where {{ condition }}
    {{ query }}
{%- endmacro %}
