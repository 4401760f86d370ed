"""What crosses from store to store: one log, read and written by three contracts.

Clauses:
    X1: Saving a list through a store never destroys what that store cannot see. It is a difference against the store's own
        projection of the log at one revision: what is equal keeps its entry (bytes, id, position); only what differs is
        removed, replaced or appended; entries without a projection in this store stay where they are. Load and save
        with no edit changes nothing; load, add one, save writes one entry. For every ordered pair of stores.
    X2: A conversation message with tool calls is, to a chat, a message item (if there is text) and one tool_call item per
        call; to a session, an assistant message with text and toolCall parts and one toolResult per finished call. A
        session's assistant message is, to a conversation store, text, parts (thinking kept) and tool calls; its toolResult
        a "tool" message that completes the call. A chat's tool_call item folds into the assistant message before it, or
        an empty one. Cards are said to no model. System messages are no chat items, and conversation stores give them
        only when asked.
    X3: States to a chat: pending is pending, success completed, error error; from a chat: pending and executing are pending,
        completed success, error error. "executing" is kept in the chat's own entry.
    X4: Outputs from a session are {success: not isError, message: the text, data: details}; from a chat {success: completed,
        message: error or "", data: result, error}. To both, `data` when the output has that shape, else the value as it
        is; a chat is shown the message where there is no data. An input that is no object is wrapped as {"value": ...}
        where an object is needed.
    X5: What a session needs and the source lacks is given defaults: api, provider and model "unknown", usage zeros with
        cost, stopReason from the presence of calls, timestamp from the entry's time.
    X6: The first projection of an entry has its id, the others ``id:call_id``. Limits count projected messages and are
        applied after projection; role filters and `since` too. A window shows the final states of calls whose results
        lie outside it.
    X7: A call has one result: one in the record and a later "tool" message of the same call id yield one. Call ids may recur:
        a result belongs to the nearest earlier call of that id that is still open. Editing a derived item edits the
        record it comes from.
    X8: Golden files hold each reading of this table, value by value.

A conversation store shows what was said in its own words exactly as it was said (C7): the state of a call in a hub message
changes in that view only by `finish_tool_call`, by an edit, or by a result that came in other words.
"""
