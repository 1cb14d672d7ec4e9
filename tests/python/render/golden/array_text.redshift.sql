select (
            select listagg(cast(element as varchar(1024)), ', ')
                within group (order by cast(element as varchar(1024)))
            from records.after.special_features as element
        ) as special_features
from bronze.pagila__film as records
