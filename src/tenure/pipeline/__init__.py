"""Bulk work as tasks, run in this process or on Spark: the only package that imports pyspark."""
