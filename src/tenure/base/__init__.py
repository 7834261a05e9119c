"""What every layer needs and nothing else: time, errors, settings, loops."""
