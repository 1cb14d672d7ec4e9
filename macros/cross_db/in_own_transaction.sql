{#- A statement that changes one table, or several that do, committed together and at once, while
    others wait who change the table as well. -#}
{% macro in_own_transaction(relation, statement) -%}
    {{ return(adapter.dispatch("in_own_transaction")(relation, statement)) }}
{%- endmacro %}

{#- There each statement is one. -#}
{% macro spark__in_own_transaction(relation, statement) -%}
    {{ statement }}
{%- endmacro %}

{#- Models that build at one time write to one table of state: under serializable isolation
    all but the first would fail. The lock lets them wait for each other, a moment long. -#}
{% macro redshift__in_own_transaction(relation, statement) -%}
    begin;

    lock {{ relation }};

    {{ statement }};

    commit
{%- endmacro %}
