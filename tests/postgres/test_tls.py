"""TLS as the URL asks for it, on every connection of a runtime."""

from pathlib import Path

import pytest

from tests.job.harness import job
from tests.postgres.server import Server
from tests.postgres.tls import CERTIFICATE, TlsFront
from triolet.actors import BatchStatus, Step, StepContext, open_runtime
from triolet.storage.model.errors import StoreUnusable
from triolet.storage.stores import open_store


async def work(ctx: StepContext) -> None:
    pass


def through(front: TlsFront, url: str, options: str) -> str:
    """Name the same database behind the front."""
    name = url.partition("?")[0].rpartition("/")[2]
    return f"postgresql://postgres@127.0.0.1:{front.port}/{name}?{options}"


async def test_every_connection_is_encrypted_and_the_server_is_known(
    postgres: Server, postgres_url: str
) -> None:
    with TlsFront(postgres.port) as front:
        options = f"sslmode=verify-full&sslrootcert={CERTIFICATE}"
        async with open_runtime(through(front, postgres_url, options)) as runtime:
            report = await runtime.launch(job(Step("work", work)))
        assert report.status is BatchStatus.COMPLETED
        assert front.encrypted >= 2  # for jobs and for control
        assert front.plain == 0


def test_a_server_that_cannot_be_proved_is_refused_at_once(
    postgres: Server, postgres_url: str, tmp_path: Path
) -> None:
    with TlsFront(postgres.port) as front:
        strange = tmp_path / "root.pem"
        strange.write_text(OTHER_ROOT)
        for options, reason in (
            (f"sslmode=verify-full&sslrootcert={strange}", "certificate verify failed"),
            ("sslmode=verify-full&sslrootcert=/no/such/file", "does not exist"),
        ):
            with pytest.raises(StoreUnusable, match=reason) as caught:
                open_store(through(front, postgres_url, options))
            assert "\n" not in str(caught.value)


def test_a_server_without_tls_is_refused_where_it_is_demanded(
    postgres: Server, postgres_url: str
) -> None:
    joint = "&" if "?" in postgres_url else "?"
    with pytest.raises(StoreUnusable, match="SSL was required"):
        open_store(f"{postgres_url}{joint}sslmode=require")


OTHER_ROOT = """\
-----BEGIN CERTIFICATE-----
MIIBiDCCAS2gAwIBAgIUcJfWrqLxI2CAzpL3S1xzONEWUJcwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNc29tZWJvZHkgZWxzZTAgFw0yNjEyMDMwNTI0NDBaGA8yMTI2
MTEwOTA1MjQ0MFowGDEWMBQGA1UEAwwNc29tZWJvZHkgZWxzZTBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABPlCb+pLkJJv4cTWRYM/mav2FBBNLUZjVBi/a+Auvpet
4K6hVud4MrppQyoO7c8b2VXZKVzS1JHwAOvPgevXXKGjUzBRMB0GA1UdDgQWBBQw
NNc/DGm6SWi0IycokG9vr9OU3zAfBgNVHSMEGDAWgBQwNNc/DGm6SWi0IycokG9v
r9OU3zAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQCWpji7rzh7
kS69v3Nix2ggDalz8D1PrJ5DFSI/wLZTRgIhAOKwzyzyLif3Yope8Q/JThMXxPev
QdD5b8K6wOOLNPrR
-----END CERTIFICATE-----
"""
