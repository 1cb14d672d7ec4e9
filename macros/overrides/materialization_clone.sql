{#- Mends `dbt clone`, which copies tables, or puts views in their place, and no word of what
    they had read: the next increment would go on from somewhere. -#}
{% materialization clone, default %}
    {{ refuse_clone() }}
{% endmaterialization %}

{% materialization clone, adapter="spark" %}
    {{ refuse_clone() }}
{% endmaterialization %}

{% macro refuse_clone() -%}
    {{ exceptions.raise_compiler_error(
        "`dbt clone` does not copy what a mart has read: run "
        ~ "`dbt build --full-refresh --select " ~ model.name ~ " --defer "
        ~ state_option() ~ command_end() ~ "`"
    ) }}
{%- endmacro %}
