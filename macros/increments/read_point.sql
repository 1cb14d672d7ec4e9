{#- The newest commit of a stream that this invocation reads. The first question is for all streams
    behind what is selected, in one statement: who bought is there with the sale, where ingest had
    both. Two threads may ask at once: both then go by the first answer. -#}
{% macro read_point(stream) -%}
    {%- if not asks_the_lake() -%}
        {{ return(9223372036854775807) }}
    {%- endif -%}
    {%- set memory = invocation_memory() -%}
    {%- set known = memory.get("read points", {}) -%}
    {%- if stream not in known -%}
        {%- set asked = [stream] -%}
        {%- if not known -%}
            {%- do streams_behind(selected_resources, asked, []) -%}
        {%- endif -%}
        {%- set queries, made_up, newest = [], [], {} -%}
        {%- for name in asked | unique | sort -%}
            {%- do queries.append(
                "select '" ~ name ~ "' as stream, max(_commit_id) as newest from "
                ~ bronze_table(name)
            ) -%}
            {%- do made_up.append([name, 9]) -%}
        {%- endfor -%}
        {%- for row in lake_rows(queries | join(" union all "), made_up) -%}
            {%- do newest.update({row[0]: (row[1] or 0) | int}) -%}
        {%- endfor -%}
        {%- do memory.setdefault("read points", newest).setdefault(
            stream, newest[stream]
        ) -%}
    {%- endif -%}
    {{ return(memory["read points"][stream]) }}
{%- endmacro %}

{#- Adds the streams that nodes are made of, directly or not, where they have a table. -#}
{% macro streams_behind(node_ids, streams, seen) -%}
    {%- for node_id in node_ids if node_id not in seen -%}
        {%- do seen.append(node_id) -%}
        {%- if node_id in graph.sources -%}
            {%- set source = graph.sources[node_id] -%}
            {%- if source.config.meta.get("ingest") and is_in_lake(source) -%}
                {%- do streams.append(source.source_name ~ "." ~ source.name) -%}
            {%- endif -%}
        {%- elif node_id in graph.nodes -%}
            {%- do streams_behind(graph.nodes[node_id].depends_on.nodes, streams, seen) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
