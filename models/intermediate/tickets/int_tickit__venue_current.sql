{{ latest_state(ref("int_tickit__venue_history")) }}
