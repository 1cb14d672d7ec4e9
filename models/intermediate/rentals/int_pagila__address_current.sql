{{ latest_state(ref("int_pagila__address_history")) }}
