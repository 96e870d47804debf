"""Upstreams over https: their certificates are verified."""

import ssl

import pytest

from support.certificates import make_certificate
from support.gateway import resources
from support.openai_shapes import openai_upstream
from support.upstream import MockUpstream


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """(certificate, key) for 127.0.0.1, signed by itself."""
    return make_certificate(tmp_path_factory.mktemp("tls"), "mock")


@pytest.fixture
def secure(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    mock = MockUpstream(tls=context)
    mock.always(openai_upstream())
    yield mock
    mock.stop()


def test_known_certificate(start, secure, certificate):
    settings = {"proxy": {"workers": 1}, "upstream": {"tls": {"ca_file": str(certificate[0])}}}
    gateway = start(resources(secure.origin), settings)
    assert [gateway.chat().status for _ in range(3)] == [200] * 3
    assert gateway.start_stream().read().body.endswith(b"data: [DONE]\n\n")
    assert len({received.connection for received in secure.received}) == 1


def test_unknown_certificate_is_502(start, secure):
    gateway = start(resources(secure.origin))
    answer = gateway.chat()
    assert answer.status == 502
    assert answer.error()["code"] == "upstream_failed"
    assert secure.received == []


def test_name_that_is_not_in_the_certificate_is_502(start, secure, certificate):
    gateway = start(
        resources(secure.origin.replace("127.0.0.1", "localhost")),
        {"upstream": {"tls": {"ca_file": str(certificate[0])}}},
    )
    assert gateway.chat().status == 502
    assert secure.received == []


def test_verification_can_be_switched_off(start, secure):
    gateway = start(resources(secure.origin), {"upstream": {"tls": {"verify": False}}})
    assert gateway.chat().status == 200
