"""Statements by subject: each module turns parse trees into what a session can run."""
