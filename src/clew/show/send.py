"""Send events to a server by HTTP, with nothing but Python's own library.

A server that is busy or away for a moment is asked again, some times and ever later; one that
refuses an event is not. The token comes from the environment and goes into one header: it is in no
message, no log, and to no other host, since redirects are not followed.
"""

from __future__ import annotations

import http.client
import json
import os
import time
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from clew.exceptions import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TOKEN = "OPENLINEAGE_API_KEY"  # noqa: S105 (the name of a variable, not what it holds)
ENDPOINT = "/api/v1/lineage"
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_REFUSED_SHOWN = 200


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def send(
    events: Iterable[dict[str, Any]],
    url: str,
    *,
    timeout: float = 10.0,
    retries: int = 3,
    pause: float = 1.0,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Send events one by one; return how many.

    Args:
        events: The events, in the order in which they are sent.
        url: The server, or the address that takes events; `/api/v1/lineage` is added to a server.
        timeout: Seconds to wait for an answer.
        retries: How often to try again where that may help.
        pause: Seconds before the second try; twice as long before each further one.
        sleep: What waits.

    Raises:
        QueryError: The address is none, or the server does not take an event.
    """
    address = _address(url)
    opener = build_opener(_NoRedirect)
    count = 0
    for event in events:
        for attempt in range(retries + 1):
            problem, is_final = _post(opener, address, event, timeout)
            if problem is None:
                break
            if is_final or attempt == retries:
                _fail(address, problem, count, attempt + 1)
            sleep(pause * 2**attempt)
        count += 1
    return count


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        msg = (
            f"`{_shown(url)}` is no address that events can be sent to.\n\n"
            "Write one that begins with http:// or https://, e.g. `http://localhost:5000`."
        )
        raise QueryError(msg)
    path = parts.path if parts.path.strip("/") else ENDPOINT
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _post(
    opener: Any, address: str, event: dict[str, Any], timeout: float
) -> tuple[str | None, bool]:
    """Send one event; return what went wrong, if anything, and whether to give up."""
    headers = {"Content-Type": "application/json"}
    token = os.environ.get(TOKEN)
    if token:
        headers["Authorization"] = f"Bearer {token}"
    body = json.dumps(event).encode()
    request = Request(address, body, headers, method="POST")  # noqa: S310 (http and https only)
    try:
        with opener.open(request, timeout=timeout):
            return None, False
    except HTTPError as error:
        with error:
            said = error.read(_REFUSED_SHOWN).decode("utf-8", "replace").strip()
        said = said.replace(token, "***") if token else said
        return f"it answered {error.code} {error.reason}: {said}", error.code not in _AGAIN
    except (URLError, OSError, http.client.HTTPException) as error:
        return str(getattr(error, "reason", None) or type(error).__name__), False


def _fail(address: str, problem: str, sent: int, tries: int) -> NoReturn:
    tried = "" if tries == 1 else f" after {tries} tries"
    todo = "Check the address, and that the server runs; then send again: events sent twice do no "
    todo += "harm."
    if "answered 401" in problem or "answered 403" in problem:
        todo = f"Set the environment variable {TOKEN} to a token that the server knows."
    msg = f"`{_shown(address)}` did not take event {sent + 1}{tried}: {problem}\n\n{todo}"
    raise QueryError(msg)


def _shown(url: str) -> str:
    """Write an address without a password that may be in it."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return urlunsplit((parts.scheme, f"{host}{port}", parts.path, "", ""))
