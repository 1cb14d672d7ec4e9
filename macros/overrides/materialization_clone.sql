{#- Fixes `dbt clone`, which copies tables, or creates views instead, without their read points:
    the next increment would start from the wrong commit. -#}
{% materialization clone, default %}
    {{ raise_clone_error() }}
{% endmaterialization %}

{% materialization clone, adapter="spark" %}
    {{ raise_clone_error() }}
{% endmaterialization %}

{#- Raises an error for `dbt clone`, which does not copy read points, with the equivalent
    build. -#}
{% macro raise_clone_error() -%}
    {{ raise_error(
        "`dbt clone` does not copy the read points of marts",
        "dbt build --full-refresh --select " ~ model.name ~ " --defer " ~ state_option(),
    ) }}
{%- endmacro %}
