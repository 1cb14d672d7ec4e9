select False as inside_transaction, True as outside
