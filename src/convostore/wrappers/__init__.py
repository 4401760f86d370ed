"""Backends around backends."""
