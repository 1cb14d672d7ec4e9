"""The broker's listeners: plaintext, or TLS with authentication and ACLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.services.security import (
    ADMIN,
    CONTROLLER,
    INGEST,
    PRODUCER,
    PUBLISHER,
    USERS,
    password,
)
from sandbox.settings import Home

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka.admin import AclBinding

_LOGIN = "org.apache.kafka.common.security"


def listeners(home: Home) -> dict[str, str]:
    """The listener and security settings of the broker."""
    return _secure(home) if home.secure else _open(home)


def user_credentials(home: Home) -> list[str]:
    """Arguments that create the SCRAM users while the storage is formatted; secret."""
    return [f"SCRAM-SHA-512=[name={user},password={password(home, user)}]" for user in USERS]


def permissions(
    written: Iterable[str], read: Iterable[str], published: Iterable[str] = ()
) -> list[AclBinding]:
    """The ACLs of the users; everything else is denied.

    There are no ACLs for consumer groups, which are not used. The producer may write to
    ``written``, the ingest user may read ``read``; the publisher may create the topics
    ``published`` of exposures.
    """
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
    )

    from spark_ingest.publish.transactions import ID_PREFIX

    of = AclOperation
    granted = [
        (PRODUCER, ResourceType.TOPIC, written, (of.WRITE,)),
        (INGEST, ResourceType.TOPIC, read, (of.READ,)),
        (PUBLISHER, ResourceType.TOPIC, published, (of.READ, of.WRITE, of.CREATE)),
        (PUBLISHER, ResourceType.TRANSACTIONAL_ID, [ID_PREFIX], (of.WRITE,)),
    ]
    return [
        AclBinding(
            kind,
            name,
            ResourcePatternType.PREFIXED if name == ID_PREFIX else ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for user, kind, names, uses in granted
        for name in names
        for operation in (*uses, of.DESCRIBE)
    ]


def _places(home: Home, names: dict[str, str]) -> dict[str, str]:
    """Listeners and advertised listeners, by listener name."""
    where = ",".join(f"{name}://127.0.0.1:{home.ports[port]}" for name, port in names.items())
    return {
        "controller.quorum.bootstrap.servers": (f"127.0.0.1:{home.ports['kafka-controller']}"),
        "listeners": where,
        "advertised.listeners": where,
        "controller.listener.names": "CONTROLLER",
    }


def _open(home: Home) -> dict[str, str]:
    return {
        **_places(home, {"PLAINTEXT": "kafka", "CONTROLLER": "kafka-controller"}),
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }


def _secure(home: Home) -> dict[str, str]:
    def plain(own: str, users: tuple[str, ...]) -> str:
        known = " ".join(f'user_{user}="{password(home, user)}"' for user in users)
        return (
            f'{_LOGIN}.plain.PlainLoginModule required username="{own}"'
            f' password="{password(home, own)}" {known};'
        )

    names = {
        "USERS": "kafka",
        "CERTIFICATES": "kafka-certificates",
        "CONTROLLER": "kafka-controller",
    }
    return {
        **_places(home, names),
        "inter.broker.listener.name": "USERS",
        "listener.security.protocol.map": ("USERS:SASL_SSL,CERTIFICATES:SSL,CONTROLLER:SASL_SSL"),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.users.scram-sha-512.sasl.jaas.config": (
            f'{_LOGIN}.scram.ScramLoginModule required username="{ADMIN}"'
            f' password="{password(home, ADMIN)}";'
        ),
        "listener.name.users.plain.sasl.jaas.config": plain(ADMIN, USERS),
        # The controller has one user, which clients do not know.
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": plain(CONTROLLER, (CONTROLLER,)),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(home.security / "server.keystore"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(home.security / "ca.pem"),
        "listener.name.certificates.ssl.client.auth": "required",
        # A certificate of CN=ingest is the user `ingest`.
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        "authorizer.class.name": ("org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        "allow.everyone.if.no.acl.found": "false",
        "super.users": f"User:{ADMIN};User:{CONTROLLER}",
    }
