select cast(id as int) as whole_number from range(5)
