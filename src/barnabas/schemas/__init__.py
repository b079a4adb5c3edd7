"""The border to schema registries: wire format, client, subjects and their mirroring.

Imports httpx, the standard library and `errors` only, because Spark's Python workers load it.
"""
