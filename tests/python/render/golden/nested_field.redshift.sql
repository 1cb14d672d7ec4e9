select cast(records._key.artist_id as integer) as artist_id
from bronze.moma__artists as records
