"""Import real conversations; then, in a new process, resume the latest one and show it in three ways.

Run it with `make demo`, or with `python examples/demo.py`. It writes demo.db in the current folder, anew each time.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import convostore
from convostore.operations.import_messages import import_messages

DATABASE = Path("demo.db")
TRANSCRIPTS = Path(__file__).parent / "transcripts"
CONTEXT, SUBJECT = "airline_agent", "customer-7"


async def import_transcripts() -> None:
    for leftover in DATABASE.parent.glob("demo.db*"):
        leftover.unlink()
    async with convostore.open(DATABASE) as store:
        for path in sorted(TRANSCRIPTS.glob("*.json*")):
            with path.open("rb") as source:
                report = await import_messages(store.backend, source, context=CONTEXT, subject_id=SUBJECT)
            print(f"  {path.name}: {report.added} conversations, {report.messages_added} messages")


async def resume() -> None:
    async with convostore.open(DATABASE) as store:
        latest = await store.find_latest(CONTEXT, SUBJECT)
        assert latest is not None
        print(f"The latest conversation of {SUBJECT}: {latest.title}")
        print(f"  {latest.message_count} messages so far")

        call = convostore.ToolCallRecord("get_seat_map", "call-1", "pending", {"flight_number": "HAT097"})
        turn = [
            convostore.Message(role="user", content="One more thing: is there a window seat left?"),
            convostore.Message(role="assistant", content="Let me look.", tool_calls=(call,)),
        ]
        await store.append_messages(latest.id, turn)
        for each in await store.open_tool_calls(latest.id):
            print(f"  waiting for {each.tool_name}({json.dumps(each.input)}), {each.tool_call_id}")

        seats = {"success": True, "message": "2 window seats", "data": ["12A", "14F"]}
        await store.finish_tool_call(latest.id, "call-1", "success", seats)
        print(f"  finished; open calls: {len(await store.open_tool_calls(latest.id))}")

        todos = (convostore.TodoItem("1", "Offer seat 12A", "in_progress"),)
        await store.sessions.save_todos(latest.id, convostore.create_todo_snapshot(todos, "[>] Offer seat 12A"))
        await store.rate(latest.id, 5, "Very helpful!")
        rated = await store.find_by_id(latest.id)
        saved = await store.sessions.load_todos(latest.id)
        assert rated is not None
        assert saved is not None
        print(f"  todos: {saved.rendered}; rated {rated.rating}: {rated.rating_comment}")

        print("\nIts end as an agent service reads it (messages):")
        for message in await store.load_messages(latest.id, limit=3):
            calls = [f"{each.tool_name} {each.state}: {json.dumps(each.output)}" for each in message.tool_calls]
            print(f"  {message.role}: {message.content} {' '.join(calls)}".rstrip())

        print("\nas an agent runtime reads it (session messages):")
        for entry in await store.sessions.load_messages(latest.id, limit=3):
            print(f"  {entry['role']}: {json.dumps(entry['content'])}")

        print("\nas a chat interface reads it (items):")
        for item in (await store.chat.get_conversation_items(latest.id))[-3:]:
            print(f"  {json.dumps(item)}")


if __name__ == "__main__":
    if sys.argv[1:] == ["resume"]:
        asyncio.run(resume())
    else:
        print(f"Importing {TRANSCRIPTS.name} into {DATABASE}:")
        asyncio.run(import_transcripts())
        print("\nIn a new process:", flush=True)
        sys.exit(subprocess.run([sys.executable, __file__, "resume"], check=False).returncode)  # noqa: S603  itself
