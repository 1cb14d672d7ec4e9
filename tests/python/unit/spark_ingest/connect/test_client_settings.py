"""One set of properties: what is refused, and what each client is given."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives import serialization

from sandbox.services.certificates import Authority
from sandbox.settings import PROJECT
from spark_ingest.connect import cluster
from spark_ingest.connect.broker import Topic, reader_options
from spark_ingest.connect.client_settings import check, java, librdkafka
from spark_ingest.connect.cluster import Cluster
from spark_ingest.connect.diagnose import Refusal
from spark_ingest.connect.profile import Connections, Registry, load_connections
from spark_ingest.errors import ConfigurationError, ServiceUnavailable

PROFILE = PROJECT / "profiles" / "ingest.yml"
SERVERS = {"bootstrap.servers": "a:1"}
SCRAM = {
    **SERVERS,
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "me",
    "sasl.password": 'a "quoted" \\ password',
}


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A certificate and its key in several forms, and those of somebody else."""
    folder = tmp_path_factory.mktemp("pem")
    authority = Authority.made("tests")
    own, other = authority.client("me"), authority.client("other", timedelta(days=1))
    key = serialization.load_pem_private_key(own.key, None)
    forms = {
        "ca": authority.signed.certificate,
        "certificate": own.certificate,
        "key": own.key,
        "other key": other.key,
        "old form": key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        ),
        "encrypted": key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"hunter2"),
        ),
        "text": b"hello",
    }
    made = {}
    for name, content in forms.items():
        made[name] = str(folder / f"{name}.pem")
        Path(made[name]).write_bytes(content)
    return made


def mutual(pem: Mapping[str, str], key: str = "key") -> dict[str, str]:
    return {
        **SERVERS,
        "security.protocol": "SSL",
        "ssl.ca.location": pem["ca"],
        "ssl.certificate.location": pem["certificate"],
        "ssl.key.location": pem[key],
    }


def test_a_password_reaches_both_clients_with_its_quotes() -> None:
    check(SCRAM, "kafka")

    assert librdkafka(SCRAM) == SCRAM
    assert java(SCRAM) == {
        **SERVERS,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required"
            ' username="me" password="a \\"quoted\\" \\\\ password";'
        ),
    }


def test_certificates_are_files_for_one_client_and_text_for_the_other(pem: dict[str, str]) -> None:
    properties = mutual(pem)
    check(properties, "kafka")

    assert librdkafka(properties) == properties
    reported = java(properties)
    assert not any(value in reported.values() for value in pem.values())
    assert reported["ssl.truststore.type"] == reported["ssl.keystore.type"] == "PEM"
    assert reported["ssl.truststore.certificates"] == Path(pem["ca"]).read_text()
    assert reported["ssl.keystore.certificate.chain"] == Path(pem["certificate"]).read_text()
    assert reported["ssl.keystore.key"] == Path(pem["key"]).read_text()


@pytest.mark.parametrize(
    ("form", "more"), [("old form", {}), ("encrypted", {"ssl.key.password": "hunter2"})]
)
def test_java_gets_each_key_in_the_form_that_it_takes(
    form: str, more: dict[str, str], pem: dict[str, str]
) -> None:
    properties = {**mutual(pem, form), **more}
    check(properties, "kafka")

    reported = java(properties)

    assert reported["ssl.keystore.key"] == Path(pem["key"]).read_text()
    assert "ssl.key.password" not in reported
    AdminClient(librdkafka(properties))


def test_the_servers_name_is_checked_unless_reported_otherwise() -> None:
    assert "ssl.endpoint.identification.algorithm" not in java(SCRAM)
    unchecked = {**SCRAM, "ssl.endpoint.identification.algorithm": "none"}
    check(unchecked, "kafka")
    assert java(unchecked)["ssl.endpoint.identification.algorithm"] == ""
    assert librdkafka(unchecked)["ssl.endpoint.identification.algorithm"] == "none"


ENVIRONMENT = {
    "KAFKA_BOOTSTRAP_SERVERS": "a:1",
    "SCHEMA_REGISTRY_URL": "https://r/",
    "AWS_REGION": "eu-central-1",
    "KAFKA_OAUTH_TOKEN_URL": "https://id/token",
    "KAFKA_OAUTH_CLIENT_ID": "me",
    "KAFKA_OAUTH_CLIENT_SECRET": "hunter2",
    "KAFKA_OAUTH_SCOPE": "kafka",
}


def test_oauth_of_the_profile_reaches_both_clients() -> None:
    found = load_connections(PROFILE, "oauth", ENVIRONMENT)

    reported = librdkafka(found.kafka)
    assert reported["sasl.oauthbearer.method"] == "oidc"
    assert reported["sasl.oauthbearer.scope"] == "kafka"
    AdminClient(reported)
    oauth = "org.apache.kafka.common.security.oauthbearer"
    assert java(found.kafka) == {
        **SERVERS,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": (
            f'{oauth}.OAuthBearerLoginModule required clientId="me"'
            ' clientSecret="hunter2" scope="kafka";'
        ),
        "sasl.oauthbearer.token.endpoint.url": "https://id/token",
        "sasl.login.callback.handler.class": f"{oauth}.OAuthBearerLoginCallbackHandler",
    }
    assert found.registry.username is None


def test_iam_of_msk_reaches_both_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    found = load_connections(PROFILE, "msk", ENVIRONMENT)

    reported = librdkafka(found.kafka)
    assert reported["sasl.mechanism"] == "OAUTHBEARER"
    assert "aws.region" not in reported
    # Signed with this machine's identity, without a question to AWS.
    token, expires = reported["oauth_cb"]("")
    assert "planted" not in token
    assert 1_700_000_000 < expires < 10_000_000_000
    AdminClient(reported)
    assert java(found.kafka) == {
        **SERVERS,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "sasl.client.callback.handler.class": (
            "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
        ),
    }


@pytest.mark.usefixtures("aws")
def test_a_role_of_another_account_is_assumed_by_both_clients() -> None:
    role = "arn:aws:iam::123456789012:role/kafka"
    found = load_connections(PROFILE, "msk", {**ENVIRONMENT, "KAFKA_AWS_ROLE_ARN": role})

    token, _ = librdkafka(found.kafka)["oauth_cb"]("")

    padded = token + "=" * (-len(token) % 4)
    signed = parse_qs(urlsplit(base64.urlsafe_b64decode(padded).decode()).query)
    # Temporary credentials, which moto's STS gives to who assumes the role.
    assert "X-Amz-Security-Token" in signed
    assert java(found.kafka)["sasl.jaas.config"] == (
        "software.amazon.msk.auth.iam.IAMLoginModule required "
        f'awsRoleArn="{role}" awsStsRegion="eu-central-1";'
    )


def test_sparks_reader_is_reported_as_java_is() -> None:
    connections = Connections(name="x", kafka=SCRAM, registry=Registry(url="http://r"))

    options = reader_options(connections, Topic("t", "id", (0,)), {}, 10)

    assert options["kafka.sasl.jaas.config"] == java(SCRAM)["sasl.jaas.config"]
    assert not any("username" in name or "password" in name for name in options)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sasl.jaas.config": "x"}, r"sasl.jaas.config: use sasl.username and"),
        ({"ssl.truststore.location": "x"}, "use ssl.ca.location"),
        ({"ssl.keystore.location": "x"}, "use ssl.certificate.location"),
        ({"sasl.pasword": "x"}, "is it sasl.password"),
        ({"security.protocol": "TLS"}, "'TLS': one of PLAINTEXT"),
        ({"security.protocol": "PLAINTEXT"}, "sasl.mechanism has no effect"),
        ({"sasl.mechanism": "GSSAPI"}, "'GSSAPI': one of PLAIN"),
        ({"sasl.mechanism": None}, "sasl.mechanism is missing"),
        ({"sasl.password": None}, "SCRAM-SHA-512 requires it"),
        ({"sasl.password": "two\nlines"}, "kafka.sasl.password contains a line break"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "token.endpoint.url is missing"),
        ({"sasl.mechanism": "AWS_MSK_IAM"}, "aws.region is missing"),
        (
            {"security.protocol": "SASL_PLAINTEXT", "ssl.ca.location": "x"},
            "ssl.ca.location has no effect",
        ),
        ({"ssl.ca.location": "/nowhere"}, "cannot read /nowhere"),
        ({"ssl.endpoint.identification.algorithm": "off"}, "https, the default"),
        ({"bootstrap.servers": None}, "kafka has no bootstrap.servers"),
    ],
)
def test_properties_that_would_not_do_what_they_say_are_refused(
    change: dict[str, str | None], said: str
) -> None:
    merged = {**SCRAM, **change}
    properties = {key: value for key, value in merged.items() if value is not None}

    with pytest.raises(ConfigurationError, match=said) as caught:
        check(properties, "kafka")

    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert "quoted" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ssl.key.location": "other key"}, "not the key of ssl.certificate.location"),
        ({"ssl.key.location": "text"}, "no private key in PEM form"),
        ({"ssl.key.location": "encrypted"}, "is encrypted: set ssl.key.password"),
        ({"ssl.certificate.location": "text"}, "no certificate in PEM form"),
        ({"ssl.ca.location": "text"}, "no certificate in PEM form"),
        ({"ssl.key.location": None}, "requires ssl.key.location as well"),
        ({"ssl.certificate.location": None}, "requires ssl.certificate.location"),
    ],
)
def test_files_that_do_not_serve_are_refused(
    change: dict[str, str | None], said: str, pem: dict[str, str]
) -> None:
    merged = {**mutual(pem), **{key: name and pem[name] for key, name in change.items()}}
    properties = {key: value for key, value in merged.items() if value is not None}

    with pytest.raises(ConfigurationError, match=said):
        check(properties, "kafka")


def test_a_wrong_password_of_a_key_is_not_repeated(pem: dict[str, str]) -> None:
    properties = {**mutual(pem, "encrypted"), "ssl.key.password": "planted"}
    with pytest.raises(ConfigurationError, match=r"password is wrong") as caught:
        check(properties, "kafka")
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "no permission on topic t at a:1"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "no permission on consumer group t"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "no permission on cluster t"),
    ],
)
def test_a_missing_permission_names_user_and_thing(code: int, said: str) -> None:
    cluster = Cluster(Connections(name="x", kafka=SCRAM, registry=Registry(url="http://r")))

    reported = cluster.failure(KafkaException(KafkaError(code)), "t")

    assert reported.exit_code == 2
    assert str(reported).startswith("user me (kafka.sasl.username of profiles/ingest.yml)")
    assert said in str(reported)


@pytest.mark.parametrize(
    ("java_error", "said"),
    [
        ("TopicAuthorizationException: Not authorized: [t]", "permission on topic t"),
        ("GroupAuthorizationException: group", "permission on consumer group"),
        ("SaslAuthenticationException: no", "rejects user me"),
        ("SslAuthenticationException: handshake", "ssl.ca.location under kafka"),
        ("common.errors.TimeoutException: 60 s", "does not answer (TimeoutException)"),
    ],
)
def test_what_refuses_sparks_reader_is_reported_as_well(java_error: str, said: str) -> None:
    cluster = Cluster(Connections(name="x", kafka=SCRAM, registry=Registry(url="http://r")))
    trace = f"[STREAM_FAILED] Query\nCaused by: org.apache.kafka.{java_error}\n at x"

    reported = cluster.reader_failure(trace, "t")

    assert reported is not None
    assert reported.exit_code == 2
    assert said in str(reported)
    assert "\n" not in str(reported)
    assert cluster.reader_failure("java.lang.NullPointerException", "t") is None


def test_a_broker_that_let_us_in_and_hangs_up_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that starts hangs up as one does that requires authentication."""
    refusal = Refusal("security.protocol", "requires authentication")
    monkeypatch.setattr(cluster, "kafka_refusal", lambda way: refusal)
    plain = {"bootstrap.servers": "127.0.0.1:1"}
    asked = Cluster(Connections(name="x", kafka=plain, registry=Registry(url="http://r")))
    answer, silence = Future[int](), Future[int]()
    answer.set_result(1)
    silence.set_exception(KafkaException(KafkaError(KafkaError._TRANSPORT)))

    with pytest.raises(ConfigurationError, match="requires authentication"):
        asked.answer(silence, lambda _: None, 1)
    assert asked.answer(answer, lambda _: None, 1) == 1
    with pytest.raises(ServiceUnavailable, match="does not answer"):
        asked.answer(silence, lambda _: None, 1)
