"""The digest of an operator's request, against the golden vector."""

from triolet.storage.model.operation import Action, Directive, request_digest

STOP = "3b884ecf4a48cc747d540cf2c193a4b643d5c62b2454b8e166d732078a0e17b0"


def test_the_digest_of_a_stop_is_the_golden_one() -> None:
    assert request_digest(Action.STOP, 913, 7, None).hex() == STOP


def test_whatever_is_asked_for_is_in_the_digest() -> None:
    digests = {
        request_digest(Action.STOP, 1, None, None),
        request_digest(Action.ABANDON, 1, None, None),
        request_digest(Action.STOP, 2, None, None),
        request_digest(Action.STOP, 1, 0, None),
        request_digest(Action.STOP, 1, None, "why"),
        *(
            request_digest(Action.RECOVER, 1, 0, None, (directive, evidence))
            for directive in Directive
            for evidence in (b"a" * 32, b"b" * 32)
        ),
    }

    assert len(digests) == 11
