"""What a store says is built of known functions and verbs only, even if the store is trusted."""

from __future__ import annotations

import pytest

from clew.exceptions import GraphError
from clew.operators.admissible import admit_settings, admit_sql, admit_type
from clew.operators.plain_data import decode, made

EXPRESSIONS = [
    "`>`(speed, 0)",
    "max(`odd name`) AS `max(odd name)`",
    "window(ts, '10 seconds')",
    "struct(k AS k, upper(v))",
    "transform(xs, x_1 -> `+`(x_1, y))",
    "CASE WHEN `>`(v, 1) THEN 'select max(x) using' ELSE '' END",
    "count(DISTINCT a, b)",
    "row_number() OVER (PARTITION BY k ORDER BY v ASC NULLS FIRST)",
    "sum(values)",
    "v in (1, 2)",
    "CAST(v AS decimal(10,2))",
    "rand(7)",
    r"in(meter, 'a', 'it\'s')",
    r"concat(k, '\\')",
]

ATTACKS = [
    "reflect('java.lang.Runtime', 'getRuntime')",
    "REFLECT ('a', 'b')",
    "`reflect`('a', 'b')",
    "`java_method` ('a', 'b')",
    "system.builtin.reflect('a', 'b')",
    "spark_catalog.default.upper(v)",
    "upper(try_reflect('a', 'b'))",
    "identifier('reflect')('a', 'b')",
    "n in (reduce 1 using 'touch x' as y)",
    "n in (map 1 USING 'touch x' as y)",
    "n in (select transform(1) using 'touch x' from t)",
    "(select max(id) from secret)",
    "(select*from secret)",
    "exists(select 1 from secret)",
    "v in (from secret select id)",
    "v in (table secret)",
    "v in (from `secret` select id)",
    "from_protobuf(v, 'm', '/etc/passwd')",
    "upper/**/(reflect('a'))",
    "r'\\' , reflect('a', 'b') , '",
    r"concat('\\', reflect('a', 'b'), '')",
    '"\'" , reflect(1, 2) , "\'"',
    "my_function(v)",
    "${spark.sql.legacy.x}",
    "concat('${spark.sql.legacy.x}', v)",
]


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_of_known_functions_is_built(text: str) -> None:
    assert admit_sql(text) == text


@pytest.mark.parametrize("text", ATTACKS)
def test_a_text_that_could_do_more_than_compute_is_refused(text: str) -> None:
    with pytest.raises(GraphError, match="the store says"):
        admit_sql(text)
    with pytest.raises(GraphError, match="the store says"):
        decode({"sql": text})
    with pytest.raises(GraphError, match="the store says"):
        decode({"function": text, "of": 1})
    with pytest.raises(GraphError, match="the store says"):
        made("Keep", {"verb": "filter", "args": (text,)})


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("Keep", {"verb": "createOrReplaceGlobalTempView", "args": ("x",)}),
        ("Reshape", {"verb": "registerTempTable", "args": ("x",), "options": {}}),
        ("Reshape", {"verb": "localCheckpoint", "args": (), "options": {}}),
        ("SetOperation", {"verb": "mergeInto"}),
        ("Aggregate", {"grouping": "foreach", "keys": (), "aggregates": (), "key_names": ()}),
    ],
)
def test_a_verb_that_is_none_of_the_step_is_refused(name: str, fields: dict[str, object]) -> None:
    with pytest.raises(GraphError):
        made(name, fields)


def test_a_merge_is_an_aggregate_function_and_nothing_else() -> None:
    with pytest.raises(GraphError, match="`expr`"):
        made("Property", {"name": "p", "value": None, "merge": {"merge": "expr", "both": None}})


@pytest.mark.parametrize(
    "said",
    [
        {"type": "udt", "pyClass": "os.system", "sqlType": "string"},
        {
            "type": "struct",
            "fields": [
                {
                    "name": "x",
                    "type": {"type": "array", "elementType": {"type": "udt", "class": "a.B"}},
                }
            ],
        },
    ],
)
def test_a_type_that_names_a_class_is_not_read(said: dict[str, object]) -> None:
    with pytest.raises(GraphError, match="names a class"):
        admit_type(said)
    with pytest.raises(GraphError, match="names a class"):
        decode({"type": said})


def test_a_setting_that_no_pipeline_has_is_refused() -> None:
    admit_settings(["spark.sql.ansi.enabled", "spark.sql.legacy.sizeOfNull"])

    with pytest.raises(GraphError, match=r"`spark.sql.catalog.x`"):
        admit_settings(["spark.sql.catalog.x"])


@pytest.mark.parametrize(
    "said",
    [
        {"stream": True, "topics": {"kafka.sasl.jaas.config": "evil"}},
        {"stream": False, "format": "evil.Source", "folder": "/"},
        {"stream": False, "format": "jdbc", "folder": "/"},
    ],
)
def test_a_source_is_read_by_formats_of_files_and_addresses_only(said: dict[str, object]) -> None:
    from unittest.mock import MagicMock

    from clew.sources.described import _read

    with pytest.raises(GraphError, match="the store says"):
        _read(said, MagicMock(), MagicMock())
