"""Barnabas copies Kafka topics between clusters: exactly once, with their schemas, through firewalls."""

__version__ = "0.1.0"
