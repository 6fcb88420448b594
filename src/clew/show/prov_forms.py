"""The three forms of W3C PROV: PROV-JSON, PROV-N and PROV-JSONLD.

Documents are written piece by piece from one set of statements, so all three say the same. The
`prov` package reads every one of them back; the tests do so.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from clew.show.statements import NAME
from clew.show.values import PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clew.show.statements import Attributes, Statements
    from clew.show.values import Literal

_XSD = "http://www.w3.org/2001/XMLSchema#"
_CONTEXT = "https://openprovenance.org/prov-jsonld/context.jsonld"


def prov_json(said: Statements) -> Iterator[str]:
    """Write PROV-JSON."""
    yield f'{{\n"prefix": {json.dumps(dict(PREFIXES), indent=1)}'
    for kind, things in (("entity", said.entities()), ("activity", said.activities())):
        yield from _section(kind, ((name, _json_attributes(a)) for name, a in things))
    yield from _section(
        "used",
        (
            (f"_:u{n}", {"prov:activity": query, "prov:entity": row})
            for n, (query, row) in enumerate(said.used())
        ),
    )
    yield from _section(
        "wasGeneratedBy",
        (
            (f"_:g{n}", {"prov:entity": row, "prov:activity": query})
            for n, (row, query) in enumerate(said.generated())
        ),
    )
    yield from _section(
        "wasDerivedFrom",
        (
            (
                f"_:d{n}",
                {
                    "prov:generatedEntity": result,
                    "prov:usedEntity": source,
                    "prov:activity": query,
                },
            )
            for n, (result, source, query) in enumerate(said.derived())
        ),
    )
    yield "\n}\n"


def _section(kind: str, members: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    is_first = True
    for name, value in members:
        before = f',\n"{kind}": {{\n' if is_first else ",\n"
        yield f"{before}{_json(name)}: {_json(value)}"
        is_first = False
    if not is_first:
        yield "\n}"


def _json_attributes(attributes: Attributes) -> dict[str, Any]:
    grouped: dict[str, list[Any]] = defaultdict(list)
    for name, value in attributes:
        typed = {"$": value.text, "type": value.type}
        grouped[name].append(value.text if value.type is None else typed)
    return {name: found[0] if len(found) == 1 else found for name, found in grouped.items()}


def prov_n(said: Statements) -> Iterator[str]:
    """Write PROV-N."""
    yield "document\n"
    for prefix, namespace in PREFIXES.items():
        yield f"  prefix {prefix} <{namespace}>\n"
    yield "\n"
    for name, attributes in said.entities():
        yield f"  entity({name}, [{_provn_attributes(attributes)}])\n"
    for name, attributes in said.activities():
        yield f"  activity({name}, -, -, [{_provn_attributes(attributes)}])\n"
    for query, row in said.used():
        yield f"  used({query}, {row}, -)\n"
    for row, query in said.generated():
        yield f"  wasGeneratedBy({row}, {query}, -)\n"
    for result, source, query in said.derived():
        yield f"  wasDerivedFrom({result}, {source}, {query}, -, -)\n"
    yield "endDocument\n"


def _provn_attributes(attributes: Attributes) -> str:
    return ", ".join(f"{name}={_provn_literal(value)}" for name, value in attributes)


def _provn_literal(value: Literal) -> str:
    if value.type == NAME:
        return f"'{value.text}'"
    text = _provn_text(value.text)
    return text if value.type is None else f"{text} %% {value.type}"


def _provn_text(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(each, each) for each in text) + '"'


def prov_jsonld(said: Statements) -> Iterator[str]:
    """Write PROV-JSONLD."""
    context = [{**PREFIXES, "xsd": _XSD, "prov": "http://www.w3.org/ns/prov#"}, _CONTEXT]
    yield f'{{\n"@context": {json.dumps(context, indent=1)},\n"@graph": ['
    before = "\n"
    for each in _jsonld_statements(said):
        yield before + _json(each)
        before = ",\n"
    yield "\n]\n}\n"


def _jsonld_statements(said: Statements) -> Iterator[dict[str, Any]]:
    for kind, things in (("Entity", said.entities()), ("Activity", said.activities())):
        for name, attributes in things:
            yield {"@type": kind, "@id": name, **_jsonld_attributes(attributes)}
    for query, row in said.used():
        yield {"@type": "Usage", "activity": query, "entity": row}
    for row, query in said.generated():
        yield {"@type": "Generation", "entity": row, "activity": query}
    for result, source, query in said.derived():
        yield {
            "@type": "Derivation",
            "generatedEntity": result,
            "usedEntity": source,
            "activity": query,
        }


def _jsonld_attributes(attributes: Attributes) -> dict[str, list[Any]]:
    grouped: dict[str, list[Any]] = defaultdict(list)
    for name, value in attributes:
        if name == "prov:type":
            grouped["type"].append(value.text)
        elif value.type is None:
            grouped[name].append({"@value": value.text})
        else:
            grouped[name].append({"@value": value.text, "@type": value.type})
    return grouped


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
