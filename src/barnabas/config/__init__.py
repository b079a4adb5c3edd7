"""The configuration file: YAML → validated, frozen models with their lines known and their secrets unread."""
