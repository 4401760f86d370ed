"""The same without await."""
