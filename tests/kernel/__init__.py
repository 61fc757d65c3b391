"""Tests of the kernel: mailboxes, actors, the store's actor, all without a real store."""
