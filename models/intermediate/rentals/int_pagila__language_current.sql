{{ latest_state(ref("int_pagila__language_history")) }}
