insert overwrite table spark_catalog.default.exported_dim_artworks
select artwork_id, classification
from marts.dim_artworks
