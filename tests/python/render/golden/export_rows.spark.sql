drop table if exists spark_catalog.default.exported_dim_artworks;
create table spark_catalog.default.exported_dim_artworks (artwork_id integer, classification varchar(64))
using parquet
partitioned by (classification)
location 's3://museum/artworks';
insert overwrite table spark_catalog.default.exported_dim_artworks
select artwork_id, classification
from marts.dim_artworks;
drop table spark_catalog.default.exported_dim_artworks
