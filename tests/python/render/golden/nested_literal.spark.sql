select from_json('[{"partition": 0}]', 'array<struct<partition: int>>') as offsets
