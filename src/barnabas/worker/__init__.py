"""What runs inside Spark's Python workers, and nothing else: no configuration, no Spark but the task's context."""
