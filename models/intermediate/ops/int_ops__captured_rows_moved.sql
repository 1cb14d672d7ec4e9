with

moves as (

    {% for stream in captured_histories() %}
        {% set history = ref(name_of_history(stream)) %}
        select
            cast('{{ stream }}' as varchar(256)) as stream_name,
            1 as row_change,
            valid_from_position as log_position
        from {{ history }}
        where not is_deleted
        union all
        select
            cast('{{ stream }}' as varchar(256)) as stream_name,
            -1 as row_change,
            valid_to_position as log_position
        from {{ history }}
        where not is_deleted and valid_to_position is not null
        union all
    {% endfor %}

    -- Gives the columns their types, and is all there is where nothing is captured.
    select
        cast(null as varchar(256)) as stream_name,
        cast(null as integer) as row_change,
        cast(null as varchar(160)) as log_position
    where 1 = 0

),

final as (

    select
        -- keys
        stream_name,

        -- numbers
        row_change,

        -- metadata
        log_position
    from moves

)

select * from final
