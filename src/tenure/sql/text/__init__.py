"""A statement's text: parsed, cut, quoted, and shown without secrets."""
