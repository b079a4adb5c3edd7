"""What stands in the place of a part of PySpark."""
