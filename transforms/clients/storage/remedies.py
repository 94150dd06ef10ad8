"""Advice about Google Cloud's errors that a command can fix: credentials, a disabled API, a quota.

All services word these errors alike, whichever library reports them; Beam wraps some in its own errors.
"""

import re
from collections.abc import Iterator

SIGN_IN = "sign in with `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file"
_DISABLED = re.compile(r"has not been used in project|accessNotConfigured|Access Not Configured|SERVICE_DISABLED")
_SERVICE = re.compile(r"\b(?P<service>[a-z]+\.googleapis\.com)/overview\?project=(?P<project>[\w:.-]*\w)")
_QUOTA = re.compile(
    r"\bquota exceeded\b|exceeded (?:\w+ )*quota|quotaExceeded|rateLimitExceeded|rate limit|RESOURCE_EXHAUSTED", re.I
)
_CREDENTIALS = ("GoogleAuthError", "Unauthenticated", "Unauthorized")
_TOO_MANY = ("TooManyRequests", "ResourceExhausted")


def remedy(error: BaseException, service: str, project: str | None = None) -> str:
    """Advice about an error of Google's libraries, which Beam may have wrapped; "" if no command helps."""
    errors = list(_chain(error))
    classes = {kind.__name__ for cause in errors for kind in type(cause).__mro__}
    texts = " ".join(f"{cause} {getattr(cause, 'reason', '')} {getattr(cause, 'errors', '')}" for cause in errors)
    if enabling := enable(texts, service, project):
        return enabling
    if classes & {*_TOO_MANY} or _QUOTA.search(texts):
        return wait_for_quota(service, project)
    is_passing = "TransportError" in classes  # there is no network
    return SIGN_IN if classes & {*_CREDENTIALS} and not is_passing else ""


def reason(error: BaseException) -> str:
    """The message of a credentials error, without Google's advice, because `SIGN_IN` is shorter."""
    return str(error).partition(" To set up Application Default Credentials")[0].rstrip(".")


def enable(text: str, service: str, project: str | None = None) -> str:
    """Advice to enable an API if a text says that it is disabled; "" otherwise."""
    if not _DISABLED.search(text):
        return ""
    if (place := _SERVICE.search(text)) is not None:
        service, project = place["service"], project or place["project"]
    command = f"gcloud services enable {service} --project {project or 'PROJECT'}"
    return f"enable it with `{command}`, and repeat the command in some minutes"


def wait_for_quota(service: str, project: str | None = None) -> str:
    command = f"gcloud beta quotas info list --service {service} --project {project or 'PROJECT'}"
    return f"wait until it is renewed, and repeat the command; `{command}` shows the quotas"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        for inner in (getattr(error, "exception_details", None) or {}).values():  # set by Beam's filesystems
            if isinstance(inner, BaseException):
                yield inner
        error = error.__cause__ or error.__context__
