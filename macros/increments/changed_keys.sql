{#- Of a mart whose rows are those of a captured table: which of them this increment makes anew.
    The first parent is the table's own; a row of the mart is of one of its rows. Of each other one
    the mart has attributes as of `instant`: that it has new changes says only where to look, since
    what changes later leaves the mart as it is, and a late change may touch any version. -#}
{% macro changed_keys(increment, key, instant, parents) -%}
    {%- if not asks_the_lake() -%}
        {{ return("") }}
    {%- endif -%}
    {%- for parent in parents -%}
        {%- do touch_days_of(increment, parent.history) -%}
        {%- do read_with(increment, parent.history, parent.stream) -%}
        {%- if truncates_of(*parent.stream.split(".")) -%}
            {{ exceptions.raise_compiler_error(
                this.identifier ~ " is rewritten by keys, and a TRUNCATE of " ~ parent.stream
                ~ " names none: materialize it as a table"
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {%- set own = changed_in(increment, parents[0]) -%}
    {%- do increment.update({"key": key, "own_changes": own}) -%}
    {{ own }}
    {%- for parent in parents[1:] %}
    union
    select kept.{{ key }}
    from {{ this }} as kept
    inner join (
        {{ dated_versions(parent, changed_in(increment, parent)) }}
    ) as parent
        on
            kept.{{ parent.column }} = parent.{{ parent.key }}
            and {{ held_when("parent", "kept." ~ instant) }}
    where
        {%- for column in parent.attributes %}
        {{ "or " if not loop.first }}not coalesce(
            kept.{{ column }} = parent.{{ column }},
            kept.{{ column }} is null and parent.{{ column }} is null
        )
        {%- endfor %}
    {%- endfor -%}
{%- endmacro %}

{#- The keys of a captured table that have new changes. -#}
{% macro changed_in(increment, parent) -%}
    select {{ parent.key }}
    from {{ changes_of(parent.history) }} as changes
    where
        {{ new_rows(increment, parent.stream) }}
        and {{ parent.key }} is not null
{%- endmacro %}

{#- What a history reads: marts do not, but that they ask what is new in it. -#}
{% macro changes_of(history) -%}
    {%- set name = history.identifier.removeprefix("__dbt__cte__") -%}
    {%- for node in graph.nodes.values()
        if node.resource_type == "model" and node.alias == name -%}
        {{ return(queryable_model(graph.nodes[node.depends_on.nodes[0]].name)) }}
    {%- endfor -%}
{%- endmacro %}

{#- A stream up to where its history has read it, and no further. -#}
{% macro read_with(increment, history, stream) -%}
    {%- set name = history.schema ~ "." ~ history.identifier -%}
    {%- for theirs in increment.recorded.reads
        if theirs.model_name == name and theirs.source_name == stream -%}
        {{ return(read_of_stream(increment, stream, until=dict(theirs, to=theirs.read_to))) }}
    {%- endfor -%}
    {%- if asks_the_lake() and writes_rows() and not is_partial_build()
        and "deferred" not in increment.code and rendered_branch() is none -%}
        {{ stop(
            name ~ " has no read point in " ~ increment_tables().read_points,
            refresh_command(node_of(history)),
        ) }}
    {%- endif -%}
    {{ return(read_of_stream(increment, stream)) }}
{%- endmacro %}
