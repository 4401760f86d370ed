"""Walking through all heads that a query lists, page by page, on any backend."""

from __future__ import annotations

from collections.abc import AsyncIterator

from msgspec import structs

from convostore.contracts.backend import Backend, HeadPage, HeadQuery

__all__ = ["pages"]


async def pages(backend: Backend, query: HeadQuery) -> AsyncIterator[HeadPage]:
    """Yield every page of what `query` lists, from its cursor on; `query.limit` is the size of a page."""
    while True:
        page = await backend.scan_heads(query)
        yield page
        if page.cursor is None:
            return
        query = structs.replace(query, cursor=page.cursor)
