"""convostore keeps what AI agents say."""

__version__ = "0.1.0"
