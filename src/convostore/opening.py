"""From a URL to a store."""
