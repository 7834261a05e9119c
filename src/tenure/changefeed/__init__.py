"""Changefeeds: the changes of tables as a stream, each row read with the schema of its time."""
