{{ latest_state(ref("int_pagila__film_actor_history")) }}
