{#- Raises an error with what is wrong and the command that fixes it. -#}
{% macro raise_error(message, command) -%}
    {{ exceptions.raise_compiler_error(message ~ ": run `" ~ command ~ command_end() ~ "`") }}
{%- endmacro %}

{#- The first three names and the number of others, so that messages are short. -#}
{% macro first_names(names) -%}
    {{ return(
        names[:3] | join(", ")
        ~ (" and " ~ (names | length - 3) ~ " more" if names | length > 3 else "")
    ) }}
{%- endmacro %}

{#- The options of this invocation that the suggested command needs, too, and that `flags`
    lacks. -#}
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

{#- The `--state` option, quoted if the folder contains a space. -#}
{% macro state_option() -%}
    {%- set args = invocation_args_dict -%}
    {%- set folder = (args.get("defer_state") or args.get("state")) | string -%}
    {{ return("--state " ~ ("'" ~ folder ~ "'" if " " in folder else folder)) }}
{%- endmacro %}
