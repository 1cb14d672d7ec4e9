{#- Mends `dbt clone`, which copies tables, or puts views in their place, and no word of what
    they had read: the next increment would go on from somewhere. -#}
{% materialization clone, default %}
    {{ raise_clone_error() }}
{% endmaterialization %}

{% materialization clone, adapter="spark" %}
    {{ raise_clone_error() }}
{% endmaterialization %}

{#- Stops `dbt clone`, which does not copy what a mart has read, and names the build that does the
    same. -#}
{% macro raise_clone_error() -%}
    {{ raise_error(
        "`dbt clone` does not copy how far a mart has read",
        "dbt build --full-refresh --select " ~ model.name ~ " --defer " ~ state_option(),
    ) }}
{%- endmacro %}
