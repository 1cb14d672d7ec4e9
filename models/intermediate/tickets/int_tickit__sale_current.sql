{{ latest_state(ref("int_tickit__sale_history")) }}
