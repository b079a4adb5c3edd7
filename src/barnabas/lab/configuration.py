"""The configuration file that a lab writes, ready for `barnabas -c`."""

from pathlib import Path
from typing import Any

import yaml

from barnabas.lab.certificates import write_private
from barnabas.lab.cluster import KafkaCluster

TOPIC = "orders"


def write_configuration(
    file: Path, source: KafkaCluster, destination: KafkaCluster, source_registry: str, destination_registry: str
) -> None:
    """Writes the file: both clusters, and one mirror of the topic `orders`."""
    content = {
        "clusters": {
            source.name: _cluster(source, source_registry),
            destination.name: _cluster(destination, destination_registry),
        },
        "groups": [
            {
                "name": "lab",
                "source": source.name,
                "destination": destination.name,
                "topics": {"create": True},
                "mirrors": [{"name": TOPIC, "from": TOPIC, "to": "{topic}", "start": "earliest"}],
            }
        ],
    }
    file.write_text(yaml.safe_dump(content, sort_keys=False))


def _cluster(cluster: KafkaCluster, registry: str) -> dict[str, Any]:
    block: dict[str, Any] = {"bootstrap": cluster.bootstrap}
    settings = cluster.client_settings()
    if cluster.security.sasl:
        block["sasl"] = {
            "mechanism": str(cluster.security.mechanism),
            "username": _secret(cluster.directory / "username", settings["sasl.username"]),
            "password": _secret(cluster.directory / "password", settings["sasl.password"]),
        }
    if cluster.certificates:
        block["tls"] = {"ca": str(cluster.certificates.ca)}
        if cluster.security.mutual_tls:
            block["tls"]["certificate"] = str(cluster.certificates.client)
            block["tls"]["key"] = str(cluster.certificates.client_key)
    block["registry"] = {"url": registry}
    return block


def _secret(file: Path, text: str) -> str:
    write_private(file, text.encode())
    return f"file:{file}"
