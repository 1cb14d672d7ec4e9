"""The webhook for alerts: Slack format or plain JSON."""

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
# Pauses before retries; after them the notice is posted at the next check.
_PAUSES_SECONDS = (1.0, 3.0)
# HTTP statuses for which a retry may succeed.
_AGAIN = (408, 425, 429)


class Form(StrEnum):
    """The payload format of a webhook."""

    SLACK = "slack"
    JSON = "json"


class Webhook(BaseModel):
    """``alerts`` of a target in ``profiles/ingest.yml``.

    Attributes:
        webhook: The URL, a secret.
        form: ``slack``: a JSON object with ``text``, for Slack, Mattermost and others;
            ``json``: an object with the fields of the notice.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    webhook: str = Field(repr=False)
    form: Form = Form.JSON

    def post(self, notice: Notice, sleep: Callable[[float], None] = time.sleep) -> None:
        """Post a notice, with up to three attempts if the receiver is down or busy.

        Raises:
            ServiceUnavailable: It did not accept the notice. The message has its host, but not
                the URL.
        """
        body = slack(notice) if self.form is Form.SLACK else plain(notice)
        host = urlsplit(self.webhook).hostname
        reason = ""
        for pause in (*_PAUSES_SECONDS, None):
            try:
                answer = httpx2.post(self.webhook, json=body, timeout=_TIMEOUT_SECONDS)
            except httpx2.HTTPError as error:
                reason = f"{type(error).__name__}: {error}".replace(self.webhook, "…")
            else:
                if answer.is_success:
                    return
                reason = f"{answer.status_code} {answer.reason_phrase}"
                if not answer.is_server_error and answer.status_code not in _AGAIN:
                    break
            if pause is not None:
                sleep(pause)
        raise ServiceUnavailable(f"the webhook at {host} did not accept the alert: {reason}")


def webhook_of(target: Target) -> Webhook | None:
    """The webhook of a target; None if it has none.

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
    """A notice as a JSON object."""
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
    """A notice as a message in Slack markup, with its three special characters escaped."""
    alert = notice.alert
    subject, message, helps = (
        text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        for text in (alert.subject, alert.message, alert.help)
    )
    if notice.event is Event.OVER:
        return {"text": f":white_check_mark: over: *{alert.kind}* {subject}: {message}"}
    return {"text": f":rotating_light: *{alert.kind}* {subject}: {message}\n`{helps}`"}
