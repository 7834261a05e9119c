"""Regular expressions: their syntax, their matching in linear time, their functions."""
