"""Settings of Kafka clients, and diagnosis of failed connections.

librdkafka retries forever and reports errors to a callback. They are evaluated here, so that a
wrong password is one line within a second, and an unavailable broker is waited for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from spark_ingest.connect import client_settings
from spark_ingest.connect.diagnose import Endpoint, Refusal, kafka_refusal
from spark_ingest.connect.profile import Connections
from spark_ingest.errors import ConfigurationError, MillraceError, ServiceUnavailable

_FILE = "profiles/ingest.yml"
_POLL_SECONDS = 0.05
# After this time a missing response is diagnosed.
_PATIENCE_SECONDS = 3.0
# All brokers reject a client for the same reason, but some may be down.
_DIAGNOSED_BROKERS = 2
_LOCAL_HOST = re.compile(r"^\w+://(?P<host>.+):(?P<port>\d+)/")
_T = TypeVar("_T")

_SILENCE = ("_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN")
# The same errors of the Java client, those that it does not retry.
_JAVA_SILENCE = (
    "errors.TimeoutException",
    "errors.DisconnectException",
    "errors.NetworkException",
    "errors.NotLeaderOrFollowerException",
    "errors.LeaderNotAvailableException",
)
_MISSING_RIGHTS = {
    "TOPIC_AUTHORIZATION_FAILED": "topic",
    "GROUP_AUTHORIZATION_FAILED": "consumer group",
    "CLUSTER_AUTHORIZATION_FAILED": "cluster",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "transactional id",
}


class Cluster:
    """Settings of the clients of one Kafka cluster, and the errors that they reported.

    Attributes:
        servers: The bootstrap servers, for messages.
        settings: Settings for a client of confluent-kafka, with an error callback.
    """

    def __init__(self, connections: Connections) -> None:
        self._properties = connections.kafka
        self._section = f"kafka in target {connections.name} of {_FILE}"
        self.servers = connections.bootstrap_servers
        self._complaints: list[KafkaError] = []
        self._let_in = False
        self.settings: dict[str, Any] = {
            **client_settings.librdkafka(connections.kafka),
            # Silence the library's log: its errors are reported here.
            "log_level": 0,
            "error_cb": self._complaints.append,
        }

    def answer(self, future: Future[_T], poll: Callable[[float], object], seconds: float) -> _T:
        """Wait for the result of a request.

        ``poll`` serves the client's callbacks with a timeout in seconds; ``seconds`` is the
        maximum wait.

        Raises:
            ConfigurationError: The cluster rejects the client.
            ServiceUnavailable: The cluster is unavailable.
            KafkaException: The broker responded with an error.
        """
        began = time.monotonic()
        self._complaints.clear()
        diagnosed = 0
        while not future.done() and (waited := time.monotonic() - began) < seconds:
            # Wait for the future, which returns at once; a poll would use its whole timeout.
            wait([future], timeout=_POLL_SECONDS)
            poll(0)
            # Diagnose at the first error, and once more if that found no reason.
            has_errors = bool(self._complaints)
            if (has_errors and not diagnosed) or (diagnosed < 2 and waited > _PATIENCE_SECONDS):
                diagnosed += 1
                self.explain()
        try:
            found = future.result(timeout=0)
        except TimeoutError as error:
            raise self._away() from error
        except KafkaException as error:
            if error.args[0].name() in _SILENCE:
                self.explain()
                raise self._away() from error
            raise
        self._complaints.clear()
        self._let_in = True
        return found

    def explain(self) -> None:
        """Diagnose the errors reported so far.

        Raises:
            ConfigurationError: A mistake in the profile or on the cluster.
        """
        for complaint in self._complaints:
            if complaint.name() == "_AUTHENTICATION":
                raise self._mistake(self._login_refusal(complaint.str()))
        if self._let_in:
            # The login was accepted; brokers also close connections at their start and stop.
            return
        for host, port in self._addresses()[:_DIAGNOSED_BROKERS]:
            protocol = self._properties.get("security.protocol", "PLAINTEXT")
            refusal = kafka_refusal(
                Endpoint(
                    host,
                    port,
                    self._properties if protocol.endswith("SSL") else None,
                    "bootstrap.servers",
                    protocol.startswith("SASL"),
                )
            )
            if refusal is not None:
                raise self._mistake(refusal)

    def failure(
        self, error: KafkaException, of: str, rights: str = "READ, DESCRIBE"
    ) -> MillraceError:
        """Convert an error of the cluster.

        ``of`` is the requested topic, group or transactional id, ``rights`` the ACL operations
        that it requires.
        """
        reason = error.args[0]
        if reason.name() in _MISSING_RIGHTS:
            return self.no_right(of, _MISSING_RIGHTS[reason.name()], rights)
        if reason.name() == "_AUTHENTICATION":
            return self._mistake(self._login_refusal(reason.str()))
        return self._silent(_short(reason.str()))

    def reader_failure(self, text: str, topic: str) -> MillraceError | None:
        """Convert an error of Spark's reader: the cluster is unavailable or denies access.

        ``text`` is the Java error with its stack trace. None for any other error.
        """
        if "TopicAuthorizationException" in text:
            return self.no_right(topic, "topic", "READ, DESCRIBE")
        if "GroupAuthorizationException" in text:
            return self.no_right("spark-kafka-source-*", "consumer group", "READ")
        if "SaslAuthenticationException" in text:
            return self._mistake(self._login_refusal("rejected while Spark reads"))
        if "SslAuthenticationException" in text:
            return self._mistake(
                Refusal(
                    "ssl.ca.location",
                    "Spark's TLS handshake fails: the certificates changed, or Java and"
                    " OpenSSL trust different CAs; set it to the CA's file",
                )
            )
        silence = next((name for name in _JAVA_SILENCE if name in text), None)
        return None if silence is None else self._silent(silence.removeprefix("errors."))

    def no_right(self, of: str, kind: str, rights: str) -> ConfigurationError:
        """The error for a missing permission (ACL)."""
        user = self._properties.get("sasl.username")
        who = f"user {user}" if user else "this client"
        key = "sasl.username" if user else "ssl.certificate.location"
        return ConfigurationError(
            f"{who} (kafka.{key} of {_FILE}) has no permission on {kind} {of} at "
            f"{self.servers}: add ACLs that allow {rights}"
        )

    def _away(self) -> ServiceUnavailable:
        reasons = [c.str() for c in self._complaints if c.name() != "_ALL_BROKERS_DOWN"]
        return self._silent(_short(reasons[-1]) if reasons else "no response in time")

    def _silent(self, reason: str) -> ServiceUnavailable:
        return ServiceUnavailable(
            f"Kafka at {self.servers} does not answer ({reason}): start it "
            f"(`sandbox up kafka`) or fix kafka.bootstrap.servers in {_FILE}"
        )

    def _login_refusal(self, text: str) -> Refusal:
        mechanism = self._properties.get("sasl.mechanism", "")
        user = self._properties.get("sasl.username", "")
        if "Unsupported SASL mechanism" in text:
            known = text.rpartition("supported mechanisms:")[2].partition("(")[0].strip()
            return Refusal(
                "sasl.mechanism", f"the broker does not support {mechanism}: set it to {known}"
            )
        if "mechanism handshake failed" in text:
            return Refusal(
                "security.protocol",
                "this listener does not use SASL: set it to SSL, with a certificate, or use "
                "the port of another listener",
            )
        if not user:
            return Refusal("sasl.mechanism", f"{mechanism} login failed: {_short(text)}")
        return Refusal(
            "sasl.password",
            f"the broker rejects user {user}: the name, the password or the mechanism "
            f"{mechanism} is wrong",
        )

    def _mistake(self, refusal: Refusal) -> ConfigurationError:
        return ConfigurationError(
            f"Kafka at {self.servers} rejects the client: {refusal.text} ({refusal.key} under "
            f"{self._section})"
        )

    def _addresses(self) -> list[tuple[str, int]]:
        """The addresses in reported errors, then those of the profile, without duplicates."""
        named = [_LOCAL_HOST.match(complaint.str()) for complaint in self._complaints]
        found = [(match["host"], match["port"]) for match in named if match]
        for server in self.servers.split(","):
            host, _, port = server.strip().rpartition(":")
            found.append((host, port))
        return [
            (host.strip("[]"), int(port))
            for host, port in dict.fromkeys(found)
            if host and port.isdigit()
        ]


def _short(text: str) -> str:
    """An error of librdkafka without its address and connection state."""
    return re.sub(r" \(after \d+ms in state \w+\)|^\S+://\S+: ", "", text)
