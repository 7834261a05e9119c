"""Where a changefeed's messages go."""
