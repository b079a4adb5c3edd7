"""Every metric of one end of the tunnel, in one list and one registry of its own."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from barnabas.tunnel.refusals import Reason


class Meter:
    """Counts what one end of one tunnel does; `registry` is what a metrics page shows."""

    def __init__(self, tunnel: str, role: str) -> None:
        self.registry = CollectorRegistry()
        self._own = {"tunnel": tunnel, "role": role}
        labels = list(self._own)

        def counter(name: str, text: str, *more: str) -> Counter:
            return Counter(f"barnabas_tunnel_{name}", text, [*labels, *more], registry=self.registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"barnabas_tunnel_{name}", text, labels, registry=self.registry).labels(**self._own)

        self._opened = counter("opened", "Connections that were joined to their target.", "target")
        self._refused = counter("refused", "Connections that were turned away.", "reason")
        self._closed = counter("closed", "Joined connections that ended.", "why")
        self._bytes = counter("bytes", "Payload that entered the tunnel (in) or came out of it (out).", "direction")
        self.open = gauge("open_connections", "Connections open now, handshakes included.")
        self.targets = gauge("targets", "Brokers and registries on the list.")
        self.deaf = gauge("targets_without_listener", "Targets on the list whose address connect cannot listen on.")
        self.expires = gauge("certificate_expires_seconds", "When this end's certificate expires, in Unix seconds.")
        self.list_current = gauge("list_current", "1 when the last question for the broker list was answered, else 0.")
        self.bytes_in = self._bytes.labels(**self._own, direction="in")
        self.bytes_out = self._bytes.labels(**self._own, direction="out")
        for reason in Reason:
            self._refused.labels(**self._own, reason=reason)

    def opened(self, target: str) -> None:
        self._opened.labels(**self._own, target=target).inc()

    def refused(self, reason: Reason) -> None:
        self._refused.labels(**self._own, reason=reason).inc()

    def closed(self, why: str) -> None:
        self._closed.labels(**self._own, why=why).inc()

    def value(self, name: str, **labels: str) -> float:
        """One metric's value now, for tests and logs; 0 for one that was never counted."""
        return self.registry.get_sample_value(f"barnabas_tunnel_{name}", {**self._own, **labels}) or 0.0
