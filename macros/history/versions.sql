{#- A query of the history in records: one row per version, valid from `valid_from_at` to
    `valid_to_at`, exclusive (null: current). Of two records with the same timestamp the later one
    wins: by offset within a partition, by Kafka's timestamp between partitions. Records without
    changes create no version; after an end there is no version until the next record. Besides the
    key and the attributes it has `is_first_version`, `is_current` and the metadata of the record.
    Innermost first: the last record of each timestamp, whether it changes anything, and when the
    next change follows. -#}
{% macro versions(relation, key, attributes, time_column, ended_column) -%}
    select
        spans.{{ key }},
        {% for attribute in attributes -%}
        spans.{{ attribute }},
        {% endfor -%}
        row_number() over (
            partition by spans.{{ key }}
            order by spans.valid_from_at
        ) = 1 as is_first_version,
        spans.valid_to_at is null as is_current,
        spans.valid_from_at,
        spans.valid_to_at,
        spans._kafka_topic_id,
        spans._kafka_partition,
        spans._kafka_offset,
        spans._kafka_timestamp,
        spans._ingested_at,
        spans._commit_id
    from (
        select
            states.*,
            states.{{ time_column }} as valid_from_at,
            lead(states.{{ time_column }}) over (
                partition by states.{{ key }}
                order by states.{{ time_column }}
            ) as valid_to_at
        from (
            select
                moments.*,
                lag(moments.{{ ended_column }}) over (
                    partition by moments.{{ key }}
                    order by moments.{{ time_column }}
                ) as earlier_{{ ended_column }}
                {%- for attribute in attributes %},
                lag(moments.{{ attribute }}) over (
                    partition by moments.{{ key }}
                    order by moments.{{ time_column }}
                ) as earlier_{{ attribute }}
                {%- endfor %}
            from (
                select
                    positions.*,
                    row_number() over (
                        partition by positions.{{ key }}, positions.{{ time_column }}
                        order by {{ latest_of_partitions() }}
                    ) as recency
                from (
                    select
                        records.*,
                        row_number() over (
                            partition by
                                records.{{ key }},
                                records.{{ time_column }},
                                records._kafka_topic_id,
                                records._kafka_partition
                            order by {{ latest_in_partition() }}
                        ) as recency_in_partition
                    from {{ relation }} as records
                ) as positions
                where positions.recency_in_partition = 1
            ) as moments
            where moments.recency = 1
        ) as states
        where
            states.earlier_{{ ended_column }} is null
            or states.earlier_{{ ended_column }} <> states.{{ ended_column }}
            {%- for attribute in attributes %}
            or not coalesce(
                states.earlier_{{ attribute }} = states.{{ attribute }},
                states.earlier_{{ attribute }} is null
                and states.{{ attribute }} is null
            )
            {%- endfor %}
    ) as spans
    where not spans.{{ ended_column }}
{%- endmacro %}
