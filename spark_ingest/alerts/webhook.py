"""Where alerts are posted: a webhook that takes JSON, as Slack's are or plain."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_ingest.alerts.alert_log import Event, Notice
from spark_ingest.connect.profile import Target
from spark_ingest.errors import ConfigurationError, ServiceUnavailable, first_problem

_TIMEOUT_SECONDS = 10.0
# A receiver that is away for longer gets the notice at the next look.
_PAUSES_SECONDS = (1.0, 3.0)
# Refused for now, and not for what it says.
_AGAIN = (408, 425, 429)


class Form(StrEnum):
    """What a webhook takes."""

    SLACK = "slack"
    JSON = "json"


class Webhook(BaseModel):
    """``alerts`` of a target in ``profiles/ingest.yml``.

    Attributes:
        webhook: The URL, which is a secret.
        form: ``slack``: a JSON object with ``text``, as Slack, Mattermost and others take it;
            ``json``: one with the notice's parts.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    webhook: str = Field(repr=False)
    form: Form = Form.JSON

    def post(self, notice: Notice, sleep: Callable[[float], None] = time.sleep) -> None:
        """Post a notice; a receiver that is away or busy is asked three times.

        Raises:
            ServiceUnavailable: It did not take the notice. The text names its host, never the
                URL.
        """
        body = slack(notice) if self.form is Form.SLACK else plain(notice)
        host = urlsplit(self.webhook).hostname
        said = ""
        for pause in (*_PAUSES_SECONDS, None):
            try:
                answer = httpx2.post(self.webhook, json=body, timeout=_TIMEOUT_SECONDS)
            except httpx2.HTTPError as error:
                said = f"{type(error).__name__}: {error}".replace(self.webhook, "…")
            else:
                if answer.is_success:
                    return
                said = f"{answer.status_code} {answer.reason_phrase}"
                if not answer.is_server_error and answer.status_code not in _AGAIN:
                    break
            if pause is not None:
                sleep(pause)
        raise ServiceUnavailable(f"the webhook at {host} took no alert: {said}")


def webhook_of(target: Target) -> Webhook | None:
    """The webhook of a target; None where it names none.

    Raises:
        ConfigurationError: ``alerts`` has an unknown key or form, or no URL.
    """
    where = f"{target.where}.alerts"
    filled = target.filled(target.alerts, where)
    if "webhook" not in filled:
        return None
    try:
        webhook = Webhook.model_validate(filled)
    except ValidationError as error:
        raise ConfigurationError(f"{where}.{first_problem(error)}") from error
    address = urlsplit(webhook.webhook)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ConfigurationError(
            f"{where}.webhook must begin with http:// or https:// and name a host"
        )
    return webhook


def plain(notice: Notice) -> dict[str, Any]:
    """A notice as a JSON object of its parts."""
    began_at = notice.began_at
    return {
        "event": str(notice.event),
        "kind": str(notice.alert.kind),
        "subject": notice.alert.subject,
        "message": notice.alert.message,
        "help": notice.alert.help,
        "began_at": began_at.astimezone(UTC).isoformat() if began_at else None,
    }


def slack(notice: Notice) -> dict[str, Any]:
    """A notice as a message in Slack's markup, in which three characters are escaped."""
    alert = notice.alert
    subject, message, helps = (
        text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        for text in (alert.subject, alert.message, alert.help)
    )
    if notice.event is Event.OVER:
        return {"text": f":white_check_mark: over: *{alert.kind}* {subject}: {message}"}
    return {"text": f":rotating_light: *{alert.kind}* {subject}: {message}\n`{helps}`"}
