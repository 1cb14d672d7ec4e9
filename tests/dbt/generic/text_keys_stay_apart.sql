{#- No two rows of a database become one: comparing texts, Redshift leaves blanks at their ends out,
    and Spark and most databases do not. A failure names the keys without these blanks; what to do
    about it is in docs/capture.md.

    key: The columns of the key that are texts. -#}
{% test text_keys_stay_apart(model, key) %}

{{ config(enabled=target.type == "redshift") }}

select
    {% for column in key %}
        rtrim({{ column }}) as {{ column }}{{ "," if not loop.last }}
    {% endfor %}
from {{ model }}
group by {% for column in key %}rtrim({{ column }}){{ ", " if not loop.last }}{% endfor %}
having
    {% for column in key %}
        {{ "or " if not loop.first -}}
        min(octet_length({{ column }})) <> max(octet_length({{ column }}))
    {% endfor %}

{% endtest %}
