"""Notices of a real server, heard by an actor."""

import math

import psycopg
import trio

from tests.postgres.proxy import Proxy
from triolet.actors.kernel.listening import ListeningActor
from triolet.storage.stores import listener_of


async def _heard(calls: trio.MemoryReceiveChannel[str]) -> str:
    with trio.fail_after(10):
        return await calls.receive()


async def test_a_notice_is_heard_at_once_and_listening_outlives_the_connection(
    postgres_url: str,
) -> None:
    send, receive = trio.open_memory_channel[str](math.inf)
    with (
        Proxy(postgres_url) as proxy,
        psycopg.connect(postgres_url, autocommit=True) as other,
    ):
        listener = listener_of(proxy.url, ["triolet_stop"])
        assert listener is not None
        actor = ListeningActor(listener, {"triolet_stop": send.send_nowait})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.run)
            assert await _heard(receive) == ""
            other.execute("NOTIFY triolet_stop, '7'")
            assert await _heard(receive) == "7"

            proxy.arm("cut_now")
            proxy.heal()
            assert await _heard(receive) == ""
            other.execute("NOTIFY triolet_stop, '8'")
            assert await _heard(receive) == "8"
            actor.life.cancel()


async def test_listening_ends_while_the_server_is_away() -> None:
    listener = listener_of("postgresql://me@127.0.0.1:9/db", ["triolet_stop"])
    assert listener is not None
    actor = ListeningActor(listener, {"triolet_stop": lambda payload: None})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor.run)
        await trio.sleep(0.05)
        actor.life.cancel()


def test_other_stores_do_not_push() -> None:
    assert listener_of("sqlite:///x.db", ["triolet_stop"]) is None
