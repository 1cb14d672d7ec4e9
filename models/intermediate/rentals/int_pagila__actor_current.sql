{{ latest_state(ref("int_pagila__actor_history")) }}
