select True as inside_transaction, False as outside
