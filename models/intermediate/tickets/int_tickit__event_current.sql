{{ latest_state(ref("int_tickit__event_history")) }}
