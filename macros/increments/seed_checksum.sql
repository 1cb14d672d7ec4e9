{% macro seed_checksum(seed) -%}
    {%- if asks_the_lake() -%}
        {%- for node in graph.nodes.values()
            if node.resource_type == "seed" and node.name == seed -%}
            {{ return(node.checksum.checksum[:12]) }}
        {%- endfor -%}
    {%- endif -%}
    {{ return("unknown") }}
{%- endmacro %}
