"""Streams and files that conversations come from and go to."""
