select array_join(records.after.special_features, ', ', 'null') as special_features
from bronze.pagila__film as records
