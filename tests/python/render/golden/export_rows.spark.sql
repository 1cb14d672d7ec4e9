insert overwrite table spark_catalog.default.exported_dim_artworks
select artwork_id, department, classification
from marts.dim_artworks
