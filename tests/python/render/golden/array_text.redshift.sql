select case
            when records.after.special_features is not null
                then coalesce(
                    (
                        select
                            listagg(
                                coalesce(cast(element as varchar(65535)), 'null'), ', '
                            ) within group (order by place)
                        from records.after.special_features as element at place
                    ),
                    ''
                )
        end as special_features
from bronze.pagila__film as records
