"""The services of the sandbox: how each is started, asked and secured, and all together."""
