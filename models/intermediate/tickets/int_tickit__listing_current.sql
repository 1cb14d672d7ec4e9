{{ latest_state(ref("int_tickit__listing_history")) }}
