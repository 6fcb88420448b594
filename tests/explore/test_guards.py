"""Who may ask: this machine, this site, and whoever knows the token."""

from __future__ import annotations

import http.client
import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from clew.exceptions import QueryError
from clew.explore import serve as module
from clew.explore.serve import Server, serve
from clew.plan.condition import parse_condition
from explore.server import serving

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from clew.ask.provenance import Provenance

TOKEN = "a-secret-of-the-test"


class _AtOnce:
    """A thread that does its work when it is started."""

    def __init__(self, target: Callable[[str], object], args: tuple[str], daemon: bool) -> None:
        self._target = target
        self._args = args

    def start(self) -> None:
        self._target(*self._args)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:8127", 200),
        ("LOCALHOST", 200),
        ("[::1]:8127", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost@evil.example", 403),
        ("[::1", 403),
    ],
)
def test_a_foreign_name_for_this_machine_is_refused(
    client: httpx.Client, host: str, status: int
) -> None:
    assert client.get("/api/store", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 200),
    ],
)
def test_requests_of_other_sites_are_refused(
    client: httpx.Client, headers: dict[str, str], status: int
) -> None:
    assert client.get("/api/store", headers=headers).status_code == status


def test_a_link_on_another_site_opens_the_page_and_asks_nothing(client: httpx.Client) -> None:
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}

    assert client.get("/", headers=visit).status_code == 200
    assert client.get("/api/backward", headers=visit).status_code == 403


def test_every_answer_tells_the_browser_what_it_may_do(client: httpx.Client) -> None:
    for path in ("/api/store", "/api/nothing", "/static/nothing", "/api/rows"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_a_token_opens_once_and_a_cookie_keeps_it_open(road: Provenance) -> None:
    with serving(road, token=TOKEN, hosts=None) as client:
        assert client.get("/api/store").status_code == 401
        assert client.get("/api/store", params={"token": "wrong"}).status_code == 401
        assert client.get("/static/js/main.js").status_code == 401

        welcome = client.get("/api/rows", params={"token": TOKEN, "stream": "a&b"})

        assert welcome.status_code == 303
        assert welcome.headers["location"] == "/api/rows?stream=a%26b"
        cookie = welcome.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert TOKEN not in cookie
        assert client.get("/api/store").status_code == 200  # the client keeps the cookie
        assert client.get("/api/store", headers={"Host": "a.name"}).status_code == 200


def test_a_ticket_opens_the_page_once(road: Provenance) -> None:
    with serving(road, token=TOKEN, ticket="once") as client:
        asked = [client.get("/", params={"token": "once"}).status_code for _ in range(2)]
        client.cookies.clear()
        asked.append(client.get("/", params={"token": "once"}).status_code)
        bearer = {"Authorization": "Bearer once"}

        assert asked == [303, 200, 401]
        assert client.get("/api/store", headers=bearer).status_code == 401


def test_the_browser_gets_no_token_on_its_command_line(
    road: Provenance, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    opened: list[str] = []

    def run(server: Server, sockets: object) -> None:
        server._ready()

    monkeypatch.setattr(Server, "run", run)
    monkeypatch.setattr(module, "_has_screen", lambda: True)
    monkeypatch.setattr("clew.explore.serve.webbrowser.open", opened.append)
    monkeypatch.setattr("clew.explore.serve.threading.Thread", _AtOnce)

    serve(road, port=0, token=TOKEN, say=lambda _, address: said.append(address))

    assert [address.partition("=")[2] for address in said] == [TOKEN]
    assert len(opened) == 1
    assert TOKEN not in opened[0]


def test_programs_send_the_token_in_a_header(road: Provenance) -> None:
    with serving(road, token=TOKEN, hosts=None) as client:
        for given, status in ((TOKEN, 200), ("wrong", 401), ("\xe9", 401)):
            headers = {b"Authorization": f"Bearer {given}".encode("latin-1")}
            assert client.get("/api/store", headers=headers).status_code == status


def test_the_address_behind_a_token_leads_nowhere_else(road: Provenance) -> None:
    with serving(road, token=TOKEN, hosts=None) as client:
        asking = http.client.HTTPConnection(urlsplit(str(client.base_url)).netloc)
        asking.request("GET", f"//evil.example/?token={TOKEN}")
        answer = asking.getresponse()

        assert answer.status == 303
        assert answer.headers["location"] == "/evil.example/"
        asking.close()


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc/passwd",
        "/static//etc/passwd",
        "/static/%00",
        "/static/" + "a" * 5000,
    ],
)
def test_a_path_outside_the_page_is_refused(client: httpx.Client, path: str) -> None:
    asking = http.client.HTTPConnection(urlsplit(str(client.base_url)).netloc)
    asking.request("GET", path)
    answer = asking.getresponse()

    assert answer.status in {404, 405}
    assert b"import" not in answer.read()
    asking.close()


def test_nothing_changes_the_store_over_http(client: httpx.Client) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for path in ("/api/store", "/api/rows", "/api/backward", "/api/export"):
            answer = client.request(method, path)
            assert answer.status_code == 405
            assert answer.json()["error"]["code"] == "refused"


def test_what_nobody_foresaw_is_said_without_its_text(
    road: Provenance, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        msg = "row 7 holds a secret"
        raise RuntimeError(msg)

    with serving(road) as client, caplog.at_level(logging.DEBUG):
        monkeypatch.setattr(road, "about", fail)
        answer = client.get("/api/store")

    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal"
    assert "RuntimeError at " in caplog.text
    assert "secret" not in answer.text + caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "n >= 4",
        "n >= 4 and not (place = 'north' or `a b` <> 'x')",
        "window.start between '2026-01-01' and '2026-02-01'",
        "car in (7, 8) and n % 2 = 1 and lo is not null",
        "note = '; drop table x -- /* (select 1)'",
    ],
)
def test_comparisons_are_safe_to_run(text: str) -> None:
    assert parse_condition(text).text == text


@pytest.mark.parametrize(
    "text",
    [
        "java_method('java.lang.System', 'exit', 0)",
        "reflect ('java.lang.Runtime', 'getRuntime') = 1",
        "`reflect`('java.lang.Runtime', 'getRuntime') = 1",
        "reflect/**/('java.lang.Runtime', 'getRuntime') = 1",
        "reflect --\n('java.lang.Runtime', 'getRuntime') = 1",
        "n = (select max(n) from text.`/etc/passwd`)",
        "exists (values 1)",
        "n = 1; drop table x",
        "note = 'a\\' or reflect(1) or note = '",
        'note = "x"',
        "true or transform(array(1), x -> x)",
        "n in (reduce 1 using 'touch x' as y)",
        "n in (map 1 using 'touch x' as y)",
        "n in (from t select 1)",
        "n in (table t)",
        "_clew_a = 1",
        "n = case when true then 1 end",
        "cast(n as int) = 1",
        "n::int = 1",
        "n = interval 1 day",
        "",
    ],
)
def test_what_could_run_code_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="comparisons of columns only"):
        parse_condition(text)
