"""Frozen nouns: what every floor above speaks of. No I/O."""
