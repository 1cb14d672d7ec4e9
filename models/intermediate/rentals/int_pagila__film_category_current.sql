{{ latest_state(ref("int_pagila__film_category_history")) }}
