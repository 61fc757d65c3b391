"""Notices of a real server, heard by an actor."""

import math

import psycopg
import trio

from tests.postgres.proxy import Proxy
from triolet.actors import (
    BatchStatus,
    Job,
    LaunchReport,
    RuntimeOptions,
    Step,
    open_runtime,
)
from triolet.actors.kernel.listening import ListeningActor
from triolet.storage.stores import listener_of


async def _heard(calls: trio.MemoryReceiveChannel[None]) -> None:
    with trio.fail_after(10):
        await calls.receive()


async def test_a_notice_is_heard_at_once_and_listening_outlives_the_connection(
    postgres_url: str,
) -> None:
    send, receive = trio.open_memory_channel[None](math.inf)

    def call() -> None:
        send.send_nowait(None)

    with (
        Proxy(postgres_url) as proxy,
        psycopg.connect(postgres_url, autocommit=True) as other,
    ):
        listener = listener_of(proxy.url, ["triolet_stop"])
        assert listener is not None
        actor = ListeningActor(listener, {"triolet_stop": call})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(actor.run)
            await _heard(receive)
            other.execute("NOTIFY triolet_stop")
            await _heard(receive)

            proxy.arm("cut_now")
            proxy.heal()
            await _heard(receive)
            other.execute("NOTIFY triolet_stop")
            await _heard(receive)
            actor.life.cancel()


async def test_listening_ends_while_the_server_is_away() -> None:
    listener = listener_of("postgresql://me@127.0.0.1:9/db", ["triolet_stop"])
    assert listener is not None
    actor = ListeningActor(listener, {"triolet_stop": lambda: None})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor.run)
        await trio.sleep(0.05)
        actor.life.cancel()


def test_other_stores_do_not_push() -> None:
    assert listener_of("sqlite:///x.db", ["triolet_stop"]) is None


async def test_a_stop_from_elsewhere_reaches_a_running_job_at_once(
    postgres_url: str,
) -> None:
    """The runtime looks only every minute: it must have been told."""
    began = trio.Event()

    async def wait(ctx: object) -> None:
        began.set()
        await trio.sleep_forever()

    options = RuntimeOptions(stop_poll=60)
    async with (
        open_runtime(postgres_url, options) as runtime,
        open_runtime(postgres_url, options) as operator,
        trio.open_nursery() as nursery,
    ):
        reports: list[LaunchReport] = []

        async def launch() -> None:
            reports.append(await runtime.launch(Job("waits", [Step("wait", wait)])))

        nursery.start_soon(launch)
        await began.wait()
        nursery.cancel_scope.deadline = trio.current_time() + 20
        (execution_id,) = runtime.running
        await operator.request_stop(execution_id, actor="me", operation_id="one")
    assert [report.status for report in reports] == [BatchStatus.STOPPED]
