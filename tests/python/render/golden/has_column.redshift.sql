select True as is_there
