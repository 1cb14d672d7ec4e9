{#- What stops a build says what differs and the one command that mends it. -#}
{% macro raise_error(message, command) -%}
    {{ exceptions.raise_compiler_error(message ~ ": run `" ~ command ~ command_end() ~ "`") }}
{%- endmacro %}

{#- The first three names, and how many more there are. No message is a page long. -#}
{% macro first_names(names) -%}
    {{ return(
        names[:3] | join(", ")
        ~ (" and " ~ (names | length - 3) ~ " more" if names | length > 3 else "")
    ) }}
{%- endmacro %}

{#- The options of the command that was given, where another one needs them too. `flags` does not
    have these. -#}
{% macro command_end() -%}
    {%- set args = invocation_args_dict -%}
    {%- set words = [""] -%}
    {%- if args.get("defer") -%}
        {%- do words.append("--defer") -%}
        {%- if args.get("favor_state") -%}
            {%- do words.append("--favor-state") -%}
        {%- endif -%}
        {%- do words.append(state_option()) -%}
    {%- endif -%}
    {%- if args.get("target") -%}
        {%- do words.append("--target " ~ args.target) -%}
    {%- endif -%}
    {{ return(words | join(" ")) }}
{%- endmacro %}

{#- The option that names the folder of the artifacts to defer to. In quotes where a shell would
    take the folder for two. -#}
{% macro state_option() -%}
    {%- set args = invocation_args_dict -%}
    {%- set folder = (args.get("defer_state") or args.get("state")) | string -%}
    {{ return("--state " ~ ("'" ~ folder ~ "'" if " " in folder else folder)) }}
{%- endmacro %}
