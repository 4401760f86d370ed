"""The three stores, each written once on any backend."""
