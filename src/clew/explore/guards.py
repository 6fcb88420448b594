"""Who may ask, and what every answer carries.

A server on loopback is reached by every page that the user's browser shows, so three things are
checked before a question is looked at: the `Host` header names this machine (else a foreign name
may point here), no other site sent the request, and, where a token is set, the request knows it.
One layer does it for all addresses, the page's files too.
"""

from __future__ import annotations

import hmac
import secrets
import time
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse

from clew.explore.failures import failure, unforeseen

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""The names of this machine for itself."""

_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_LOCKED = (
    "this explorer asks for a token.\n\nOpen the address that `clew explore` printed, or send "
    "the header `Authorization: Bearer TOKEN`."
)


class Guard:
    """Checks requests, and adds headers to answers.

    Args:
        app: What is guarded.
        token: What a request must know; None if anyone on this machine may ask.
        hosts: The names that the server goes by; None if any will do, with a token.
        ticket: What opens the page like the token, once.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str | None,
        hosts: frozenset[str] | None = LOOPBACK,
        ticket: str | None = None,
    ) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts
        self._ticket = ticket
        # A cookie is sent to every port of a host: another server must not learn the token by it.
        self._session = secrets.token_urlsafe(32)
        self._cookie = f"clew_{secrets.token_hex(4)}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        is_sent = False

        async def send_with_headers(message: Message) -> None:
            nonlocal is_sent
            if message["type"] == "http.response.start":
                is_sent = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                millis = (time.perf_counter() - began) * 1000
                headers.append("Server-Timing", f"total;dur={millis:.1f}")
            await send(message)

        try:
            refused = self._check(scope)
            await (refused or self._app)(scope, receive, send_with_headers)
        except Exception as error:  # noqa: BLE001 (whatever it is, its text stays here)
            answer = unforeseen(error)
            if not is_sent:
                await answer(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> Response | None:
        """Return the answer to a request that may not pass."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._hosts is not None and _name_of(host) not in self._hosts:
            text = "the `Host` header does not name this machine.\n\nOpen http://127.0.0.1 instead."
            return failure(403, "foreign_host", text)
        if _is_foreign(headers, host, scope["path"]):
            return failure(403, "foreign_site", "another site sent this request.")
        return None if self._token is None else self._check_token(scope, headers)

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), None)
        may_open = given is not None and (self._knows(given) or self._takes(given))
        if may_open and scope["method"] == "GET":
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            return self._welcome(scope, rest)
        bearer = headers.get("authorization", "")
        if bearer.startswith("Bearer ") and self._knows(bearer.removeprefix("Bearer ")):
            return None
        if _same(_cookies(headers).get(self._cookie, ""), self._session):
            return None
        return failure(401, "token", _LOCKED)

    def _welcome(self, scope: Scope, query: str) -> Response:
        """Set a cookie, and take the token out of the address."""
        path = "/" + scope["path"].lstrip("/")
        answer = RedirectResponse(f"{path}?{query}" if query else path, 303)
        answer.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
        return answer

    def _knows(self, given: str) -> bool:
        return _same(given, self._token or "")

    def _takes(self, given: str) -> bool:
        """Tell whether this is the ticket, which is of no use from then on."""
        if self._ticket is None or not _same(given, self._ticket):
            return False
        self._ticket = None
        return True


def _same(one: str, two: str) -> bool:
    return hmac.compare_digest(one.encode(), two.encode())


def _name_of(host: str) -> str:
    """Return the name in a `Host` header, without the port; empty if it is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _is_foreign(headers: Headers, host: str, path: str) -> bool:
    """Tell whether a browser says that another site sent the request.

    A link on another site may open the page, but no question: questions may start Spark. Other
    ports of this machine are "same-site", and cookies are sent from there; they are foreign here.
    """
    origin = headers.get("origin")
    if origin is not None:
        try:
            return urlsplit(origin).netloc.lower() != host.lower()
        except ValueError:
            return True
    is_visit = headers.get("sec-fetch-mode") == "navigate" and not path.startswith("/api")
    return headers.get("sec-fetch-site", "none") not in {"same-origin", "none"} and not is_visit


def _cookies(headers: Headers) -> dict[str, str]:
    try:
        return {name: each.value for name, each in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}
