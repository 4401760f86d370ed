"""``sqlite:///file`` and ``sqlite://``: one file, one machine, many processes. The embedded default.

What it does: write-ahead logging, a sync of the disk before every answer, one writer thread that puts whatever waits into
one transaction, reads that never wait for writes, an index for every filter and order. What it needs: a local disk, since
SQLite's locks and shared memory do not work on most network file systems. What it confesses: one process writes at a time,
the others wait for their turn; deleted text is overwritten in the database at once, but leaves the write-ahead log
(``file-wal``) only when that is next reused or the last process closes; a backup by copying must take ``file-wal`` along, or
use ``VACUUM INTO``.
"""

from __future__ import annotations

from convostore.backends.sqlite.address import from_url
from convostore.backends.sqlite.backend import SqliteBackend

__all__ = ["SqliteBackend", "from_url"]
