"""The kernel: mailboxes, actors, stop tokens, and the actor that owns a store."""
