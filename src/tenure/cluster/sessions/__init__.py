"""Node sessions: made, kept alive, proved dead; and the versions of the nodes that hold them."""
