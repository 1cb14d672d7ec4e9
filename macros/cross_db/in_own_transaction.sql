{#- Wraps one or more statements that change a table in a transaction, for which concurrent
    writers wait. -#}
{% macro in_own_transaction(relation, statement) -%}
    {{ return(adapter.dispatch("in_own_transaction")(relation, statement)) }}
{%- endmacro %}

{#- On Spark each statement is a transaction. -#}
{% macro spark__in_own_transaction(relation, statement) -%}
    {{ statement }}
{%- endmacro %}

{#- Concurrent models write to the same state table: under serializable isolation all but the
    first would fail. The lock makes them wait briefly instead. -#}
{% macro redshift__in_own_transaction(relation, statement) -%}
    begin;

    lock {{ relation }};

    {{ statement }};

    commit
{%- endmacro %}
