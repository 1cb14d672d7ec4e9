{{ latest_state(ref("int_tickit__category_history")) }}
