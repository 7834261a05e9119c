"""The composition root in pieces: each module builds one layer of a node and returns what it built."""
