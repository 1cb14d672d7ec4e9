"""Clients of a Kafka cluster: how they connect, and why a cluster rejects them.

librdkafka tries for ever and reports its reasons beside the answer. These are listened to
here, so that a wrong password is one line within a second, and a broker that is away stays
something to wait for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from spark_ingest.connect import client_settings
from spark_ingest.connect.diagnose import Refusal, Way, kafka_refusal
from spark_ingest.connect.profile import Connections
from spark_ingest.errors import ConfigurationError, MillraceError, ServiceUnavailable

_FILE = "profiles/ingest.yml"
_POLL_SECONDS = 0.05
# An answer that takes longer has a reason.
_PATIENCE_SECONDS = 3.0
# Why one broker rejects us, all do; some may be away.
_LOOKED_AT = 2
_LOCAL_HOST = re.compile(r"^\w+://(?P<host>.+):(?P<port>\d+)/")
_T = TypeVar("_T")

_SILENCE = ("_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN")
# How Java's client says so; what it tries again by itself gets to nobody.
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
    """How clients of one Kafka cluster are set up, and what they complained of.

    Attributes:
        servers: Where its brokers are, for people.
        settings: For a client of confluent-kafka; its complaints come here.
    """

    def __init__(self, connections: Connections) -> None:
        self._properties = connections.kafka
        self._section = f"kafka in target {connections.name} of {_FILE}"
        self.servers = connections.bootstrap_servers
        self._complaints: list[KafkaError] = []
        self._let_in = False
        self.settings: dict[str, Any] = {
            **client_settings.librdkafka(connections.kafka),
            # The library's own log goes nowhere: errors say in one line what is wrong.
            "log_level": 0,
            "error_cb": self._complaints.append,
        }

    def answer(self, future: Future[_T], poll: Callable[[float], object], seconds: float) -> _T:
        """Wait for the answer to a question.

        ``poll`` lets the client say its complaints, for at most so many seconds; ``seconds`` is
        the longest wait.

        Raises:
            ConfigurationError: The cluster will not let us in as things are.
            ServiceUnavailable: No broker answers.
            KafkaException: What a broker answered.
        """
        began = time.monotonic()
        self._complaints.clear()
        looked = 0
        while not future.done() and (waited := time.monotonic() - began) < seconds:
            # An answer ends the wait at once; polling would sit its time out.
            wait([future], timeout=_POLL_SECONDS)
            poll(0)
            heard = len(self._complaints)
            # Asked once when something is wrong, and once more where that explained nothing.
            if (heard and not looked) or (looked < 2 and waited > _PATIENCE_SECONDS):
                looked += 1
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
        """Raise what the complaints so far mean, where they mean a mistake.

        Raises:
            ConfigurationError: One that a person can mend in the profile or on the cluster.
        """
        for complaint in self._complaints:
            if complaint.name() == "_AUTHENTICATION":
                raise self._mistake(self._login_refusal(complaint.str()))
        if self._let_in:
            # The login was right. A broker that stops or starts hangs up, too.
            return
        for host, port in self._addresses()[:_LOOKED_AT]:
            protocol = self._properties.get("security.protocol", "PLAINTEXT")
            refusal = kafka_refusal(
                Way(
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
        """What an error of the cluster's means for a person.

        ``of`` is the topic, group or transactional id that was asked for, ``rights`` what one
        must be allowed to do with it.
        """
        reason = error.args[0]
        if reason.name() in _MISSING_RIGHTS:
            return self.no_right(of, _MISSING_RIGHTS[reason.name()], rights)
        if reason.name() == "_AUTHENTICATION":
            return self._mistake(self._login_refusal(reason.str()))
        return self._silent(_short(reason.str()))

    def reader_failure(self, text: str, topic: str) -> MillraceError | None:
        """What an error of Spark's reader means: the cluster is away, or does not let it in.

        ``text`` is what Java said, stack trace and all.
        """
        if "TopicAuthorizationException" in text:
            return self.no_right(topic, "topic", "READ, DESCRIBE")
        if "GroupAuthorizationException" in text:
            return self.no_right("spark-kafka-source-*", "consumer group", "READ")
        if "SaslAuthenticationException" in text:
            return self._mistake(self._login_refusal("refused while Spark reads"))
        if "SslAuthenticationException" in text:
            return self._mistake(
                Refusal(
                    "ssl.ca.location",
                    "Spark's TLS handshake fails: the certificates changed, or Java and"
                    " OpenSSL trust different CAs; name the CA's file",
                )
            )
        silence = next((name for name in _JAVA_SILENCE if name in text), None)
        return None if silence is None else self._silent(silence.removeprefix("errors."))

    def no_right(self, of: str, kind: str, rights: str) -> ConfigurationError:
        """The error of a user who lacks a permission (ACL)."""
        user = self._properties.get("sasl.username")
        who = f"user {user}" if user else "this client"
        key = "sasl.username" if user else "ssl.certificate.location"
        return ConfigurationError(
            f"{who} (kafka.{key} of {_FILE}) has no permission on {kind} {of} at "
            f"{self.servers}: let the cluster's ACLs allow {rights}"
        )

    def _away(self) -> ServiceUnavailable:
        reasons = [c.str() for c in self._complaints if c.name() != "_ALL_BROKERS_DOWN"]
        return self._silent(_short(reasons[-1]) if reasons else "no answer in time")

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
            return Refusal("sasl.mechanism", f"the broker knows no {mechanism}: set it to {known}")
        if "mechanism handshake failed" in text:
            return Refusal(
                "security.protocol",
                "this listener asks for no user: set it to SSL, with a certificate, or take "
                "the port of another listener",
            )
        if not user:
            return Refusal("sasl.mechanism", f"{mechanism} does not get us in: {_short(text)}")
        return Refusal(
            "sasl.password",
            f"the broker refuses user {user}: the name, the password or the mechanism "
            f"{mechanism} is wrong",
        )

    def _mistake(self, refusal: Refusal) -> ConfigurationError:
        return ConfigurationError(
            f"Kafka at {self.servers} refuses us: {refusal.text} ({refusal.key} under "
            f"{self._section})"
        )

    def _addresses(self) -> list[tuple[str, int]]:
        """Those complained of, else those of the profile: each once."""
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
    """Without the address and the state that librdkafka puts around its reason."""
    return re.sub(r" \(after \d+ms in state \w+\)|^\S+://\S+: ", "", text)
