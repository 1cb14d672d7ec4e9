"""The services of the sandbox: start, health check and security of each, and of all."""
