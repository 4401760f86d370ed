"""Every window on SQLite is what the memory backend says, read in place and in a thread alike."""

import itertools
from pathlib import Path

import pytest

from convostore.backends.memory import MemoryBackend
from convostore.backends.sqlite import SqliteBackend, listing, reading
from convostore.contracts.backend import Backend, HeadQuery, Window
from convostore.testing.drafts import change, creation, entry, entry_ids


async def _fill(backend: Backend) -> None:
    """Leave twelve entries at positions 1 to 19 with replaced ones among the first, in the middle and at the end."""
    revisions = iter("abcdefgh")
    large = bytes(reading.small_body_bytes_max + 1)
    await backend.commit(creation("before", entry("e1"), revision="before"))
    await backend.commit(creation("c", *(entry(f"e{n}") for n in range(1, 11)), revision=next(revisions)))
    await backend.commit(creation("behind", entry("e1"), revision="behind"))
    for replaced in (("e2", "e9"), ("e5",)):
        again = tuple(entry(each, b"again") for each in replaced)
        await backend.commit(change("c", replace=again, revision=next(revisions)))
    await backend.commit(change("c", entry("f1", large), entry("f2"), remove=("e4",), revision=next(revisions)))
    await backend.commit(change("c", entry("f3"), replace=(entry("f1", large), entry("e1")), revision=next(revisions)))


@pytest.mark.parametrize("small_rows_max", [reading.small_rows_max, 2])
async def test_windows_are_those_of_the_memory_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_rows_max: int
) -> None:
    """All combinations of bounds, changes, names, limits and ends return the same entries in the same order."""
    monkeypatch.setattr(reading, "small_rows_max", small_rows_max)
    memory, backend = MemoryBackend(), SqliteBackend(tmp_path / "s.db")
    for each in (memory, backend):
        await _fill(each)
    for after, before, changed_after, limit, newest, named in itertools.product(
        (0, 3, 16),
        (None, 6, 17),
        (None, 0, 5, 12, 14, 17, 99),
        (None, 0, 1, 4),
        (False, True),
        (None, ("f1", "e2", "none", "e5", "e2"), ()),
    ):
        window = Window(
            after=after, before=before, changed_after=changed_after, limit=limit, newest=newest, entry_ids=named
        )
        assert await memory.read("c", window) == await backend.read("c", window), window
    await backend.aclose()


async def test_many_names_are_looked_up_in_parts(tmp_path: Path) -> None:
    """A window, a repetition and a removal may each name more ids than one statement takes."""
    backend = SqliteBackend(tmp_path / "s.db")
    entries = [entry(f"e{n}") for n in range(700)]
    await backend.commit(creation("c", *entries))
    names = tuple(each.entry_id for each in entries)
    for count in (1, 2, 3, 255, 256, 257, 699, 700):
        assert list(names[:count]) == await entry_ids(backend, "c", Window(entry_ids=names[:count][::-1]))
    assert not (await backend.commit(change("c", *entries))).applied
    await backend.commit(change("c", remove=names[1:]))
    assert ["e0"] == await entry_ids(backend, "c")
    await backend.aclose()


async def test_a_large_page_is_the_same_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a page is read in place or, being too large for that, in a thread, it is the same page."""
    backend = SqliteBackend(tmp_path / "s.db")
    for number in range(5):
        await backend.commit(creation(f"c{number}", fields={"title": bytes(1000)}))
    pages = []
    for bound in (listing.small_bytes_max, 3000):
        monkeypatch.setattr(listing, "small_bytes_max", bound)
        pages.append(await backend.scan_heads(HeadQuery(order="updated", limit=4)))
    assert pages[0] == pages[1]
    assert ["c4", "c3", "c2", "c1"] == [each.conversation_id for each in pages[0].items]
    await backend.aclose()
