"""What convostore costs beside sqlite3 driven by hand: `python -m benchmarks`, or `make bench`."""
