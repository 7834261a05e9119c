"""Functions and operators, a module for each subject."""
