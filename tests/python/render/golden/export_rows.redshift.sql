unload ('select classification, department, artwork_id from "marts"."dim_artworks"')
to 's3://museum/artworks/'
iam_role default
format as parquet
partition by (department, classification)
cleanpath
