"""The way through a firewall: one open port, mutual TLS 1.3, and broker names that keep working.

`serve` stands in the source network, `connect` in the destination network. Every Kafka connection made to one of
`connect`'s loopback addresses becomes one TLS connection to `serve`, which opens it to the broker of that name. What
client and broker say to each other, their own TLS and SASL included, passes through untouched.
"""

from barnabas.tunnel.connect import TunnelClient
from barnabas.tunnel.diagnose import Step, diagnose
from barnabas.tunnel.serve import TunnelServer
from barnabas.tunnel.targets import Target

__all__ = ["Step", "Target", "TunnelClient", "TunnelServer", "diagnose"]
