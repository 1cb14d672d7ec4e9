{#- Mends `dbt clone`, which copies tables, or puts views in their place, and no word of what
    they had read: the next increment would go on from somewhere. -#}
{% materialization clone, default %}
    {{ refuse_clone() }}
{% endmaterialization %}

{% materialization clone, adapter="spark" %}
    {{ refuse_clone() }}
{% endmaterialization %}

{#- Stops `dbt clone`, which does not copy what a mart has read, and names the build that does the
    same. -#}
{% macro refuse_clone() -%}
    {{ stop(
        "`dbt clone` does not copy how far a mart has read",
        "dbt build --full-refresh --select " ~ model.name ~ " --defer " ~ state_option(),
    ) }}
{%- endmacro %}
