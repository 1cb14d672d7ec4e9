{#- No two keys differ only in trailing blanks: Redshift ignores them when it compares texts, while
    Spark and most databases do not, so two rows of a database would become one. Returns such keys
    without the trailing blanks: see docs/capture.md.

    key: The text columns of the key. -#}
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
