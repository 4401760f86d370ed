"""The published compliance suites."""
