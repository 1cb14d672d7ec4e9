select json_parse('[{"partition": 0}]') as offsets
