{{ latest_state(ref("int_pagila__polled_address_history")) }}
