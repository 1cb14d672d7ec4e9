{{ latest_state(ref("int_moma__artists_history")) }}
