"""One module per message format: to and from the hub message. Pure functions."""
