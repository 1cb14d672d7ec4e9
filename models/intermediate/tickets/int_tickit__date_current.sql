{{ latest_state(ref("int_tickit__date_history")) }}
