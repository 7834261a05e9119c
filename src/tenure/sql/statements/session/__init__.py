"""Statements that a session answers itself: transactions, cursors, variables, prepared statements."""
