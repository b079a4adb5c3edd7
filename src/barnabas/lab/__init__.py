"""Real brokers and registries on this machine, and the jars they need."""
