"""Processes that die in the middle of writing, and what the next one finds."""
