{{ latest_state(ref("int_pagila__category_history")) }}
