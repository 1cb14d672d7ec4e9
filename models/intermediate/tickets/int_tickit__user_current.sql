{{ latest_state(ref("int_tickit__user_history")) }}
