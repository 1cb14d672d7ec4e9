{{ latest_state(ref("int_moma__artworks_history")) }}
