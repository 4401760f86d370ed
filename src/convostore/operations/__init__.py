"""What a person asks for: import, inspect, copy, verify."""
