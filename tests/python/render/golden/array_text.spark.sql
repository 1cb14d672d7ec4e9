select nullif(array_join(array_sort(records.after.special_features), ', '), '') as special_features
from bronze.pagila__film as records
