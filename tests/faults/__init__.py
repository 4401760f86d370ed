"""Faults made on purpose: what the tests use to break the ground below a store."""
