"""Every verb of a traced frame, in every way to name a column: the cases of a walk.

A case is a function that is run over plain frames and over traced ones. Its name begins with the
verb it is about. `first` has a column of each kind, an odd name and a struct; `second` shares
names with it, some with other types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql import types as T

from clew.plan.columns import quote

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

FIRST = (
    "id long not null, k string, v int, at timestamp, s struct<a: int, b: string>, "
    "tags array<int>, m map<string, int>, `odd.na``me` int"
)
SECOND = "n long not null, k string, id int, at timestamp, p double, Day date"

_ROWS = """
(1L, 'a', 10, timestamp '2026-01-01 10:00:00', struct(1, 'x'), array(1, 2), map('p', 1), 7),
(2L, 'a', 20, timestamp '2026-01-01 10:00:30', struct(2, 'x'), array(3), map('q', 2), 7),
(3L, 'b', 30, timestamp '2026-01-01 10:01:10', struct(3, 'y'), array(), map(), 8),
(4L, NULL, NULL, timestamp '2026-01-01 10:02:00', NULL, NULL, NULL, NULL),
(5L, 'b', 20, timestamp '2026-01-01 10:02:10', struct(1, NULL), array(4, NULL), map('p', NULL), 9)
"""
_OTHERS = """
(11L, 'a', 1, timestamp '2026-01-01 10:00:00', 1.5D, date '2026-01-01'),
(12L, 'a', 2, timestamp '2026-01-01 10:00:20', 2.5D, date '2026-01-02'),
(13L, 'c', 3, timestamp '2026-01-01 10:01:00', NULL, date '2026-01-01'),
(14L, NULL, NULL, timestamp '2026-01-01 10:05:00', 0.5D, NULL)
"""


def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    return _frame(spark, FIRST, _ROWS), _frame(spark, SECOND, _OTHERS)


def _frame(spark: SparkSession, ddl: str, values: str) -> DataFrame:
    schema = T.StructType.fromDDL(ddl)
    assert isinstance(schema, T.StructType)
    rows = spark.sql(f"SELECT * FROM VALUES {values}").toDF(*schema.names)
    kinds = zip(rows.columns, schema.fields, strict=True)
    return rows.select(*[F.col(quote(c)).cast(f.dataType).alias(f.name) for c, f in kinds])


def _most(frame: Any, name: str = "m") -> Any:
    """Aggregate a frame by a column that a join with the frame itself meets again."""
    return frame.groupBy(frame.k).agg(F.max(frame.v).alias(name)).filter(F.col(name) < 25)


CASES: dict[str, Callable[[Any, Any], Any]] = {
    # select
    "select: every spelling": lambda t, o: t.select(
        t["k"], t.v + 1, F.col("id"), "v", t["s.a"], "s.b", F.col("s")["a"], t.s.b, "`odd.na``me`"
    ),
    "select: odd name by item": lambda t, o: t.select(t["`odd.na``me`"], t["`odd.na``me`"] + 1),
    "select: star": lambda t, o: t.select("*", F.lit(1).alias("one")),
    "select: star between": lambda t, o: t.select("k", "*", t.v),
    "select: struct star": lambda t, o: t.select("s.*", "id"),
    "select: item star": lambda t, o: t.select(t["*"]),
    "select: unnamed expressions": lambda t, o: t.select(t.v * 2, -t.v, t["v"].cast("string"), t.v),
    "select: cast of odd": lambda t, o: t.select(F.upper(t["`odd.na``me`"].cast("string"))),
    "select: cast": lambda t, o: t.select(t.v.cast("string"), t["v"].cast("double"), t.k),
    "select: functions": lambda t, o: t.select(
        F.upper(t.k), F.coalesce(t["v"], t.id), F.struct(t.k, t["v"]), F.array(t.v), t.v.isNull()
    ),
    "select: fields made": lambda t, o: t.select(F.struct(t.k, t.v).alias("x")).select(
        "x.k", "x.v"
    ),
    "select: named struct": lambda t, o: t.select(F.struct(t.k, t["s.a"]).alias("x")),
    "select: to json": lambda t, o: t.select(F.to_json(F.struct("*"))),
    "select: to json of items": lambda t, o: t.select(F.to_json(F.struct(t.k, t["v"])).alias("j")),
    "select: list": lambda t, o: t.select(["k", t["v"]]),
    "select: another case": lambda t, o: t.select("K", t["V"], F.col("ID")),
    "select: attribute after filter": lambda t, o: t.filter("id > 1").select(t.k, t["v"] + t.id),
    "select: after alias": lambda t, o: t.alias("x").select("x.k", F.col("x.v"), "x.*"),
    "select: after alias item": lambda t, o: t.alias("x").select(t.k, F.col("x.v")),
    "select: alias of other frame name": lambda t, o: t.alias("x").select(F.col("x.s.a"), "x.s.b"),
    "select: after rename": lambda t, o: t.withColumnRenamed("k", "kk").select("kk", t.v),
    "select: explode": lambda t, o: t.select("id", F.explode(t.tags)),
    "select: explode alias": lambda t, o: t.select(t.id, F.explode(t["tags"]).alias("tag")),
    "select: explode outer": lambda t, o: t.select("id", F.explode_outer("tags")),
    "select: posexplode": lambda t, o: t.select("id", F.posexplode("tags")),
    "select: explode map": lambda t, o: t.select("id", F.explode("m")),
    "select: inline": lambda t, o: t.select("id", F.inline(F.array("s"))),
    "select: window": lambda t, o: t.select("id", F.window("at", "1 minute", "30 seconds")),
    "select: window of item": lambda t, o: t.select("id", F.window(t.at, "1 minute").alias("w")),
    "select: lambda": lambda t, o: t.select(F.transform(t.tags, lambda x: x + t.v)),
    "select: get item": lambda t, o: t.filter("id < 3").select(t.tags.getItem(0), t.m["p"]),
    "select: duplicate names": lambda t, o: t.select("k", "k"),
    "select: duplicate by item": lambda t, o: t.select(t.k, t["k"]),
    "select: item star behind a join": lambda t, o: t.join(o, t.k == o.k).select(t["*"], o.p),
    "select: item star of the other side": lambda t, o: t.join(o, t.k == o.k).select(o["*"]),
    "select: item star behind a step": lambda t, o: t.withColumn("w", t.v + 1).select("w", t["*"]),
    "select: nothing": lambda t, o: t.select(),
    "select: same name other value": lambda t, o: t.select((t.v + 1).alias("v"), t.v.alias("w")),
    "select: when": lambda t, o: t.select(F.when(t.v > 15, t.k).otherwise("small")),
    "selectExpr: text": lambda t, o: t.selectExpr("k", "v + 1", "s.a", "`odd.na``me` as o", "*"),
    "selectExpr: list": lambda t, o: t.selectExpr(["k", "v as w"]),
    "selectExpr: stack": lambda t, o: t.selectExpr("id", "stack(2, v, 1) as x"),
    # columns
    "withColumn: item": lambda t, o: t.withColumn("w", t["v"] * 2),
    "withColumn: replace": lambda t, o: t.withColumn("v", t.v.cast("string")),
    "withColumn: replace then old": lambda t, o: t.withColumn("v", F.lit(1)).withColumn("x", t.id),
    "withColumn: replace other case": lambda t, o: t.withColumn("K", F.lit(1)),
    "withColumn: odd": lambda t, o: t.withColumn("a.b", t.v).select("`a.b`"),
    "withColumn: literal": lambda t, o: t.withColumn("one", F.lit(1)),
    "withColumn: struct field": lambda t, o: t.withColumn("s", t.s.withField("c", t.v)),
    "withColumn: explode": lambda t, o: t.withColumn("tag", F.explode("tags")),
    "withColumn: explode in place": lambda t, o: t.withColumn("tags", F.explode(t.tags)),
    "withColumn: date from string": lambda t, o: t.withColumn("d", F.to_date(t.at)),
    "withColumns: several": lambda t, o: t.withColumns({"a": t.v, "b": F.col("k"), "v": t.id}),
    "withColumnRenamed: name": lambda t, o: t.withColumnRenamed("v", "w"),
    "withColumnRenamed: case": lambda t, o: t.withColumnRenamed("V", "w"),
    "withColumnRenamed: missing": lambda t, o: t.withColumnRenamed("nope", "w"),
    "withColumnRenamed: odd": lambda t, o: t.withColumnRenamed("odd.na`me", "plain"),
    "withColumnRenamed: clash": lambda t, o: t.withColumnRenamed("v", "id"),
    "withColumnRenamed: then old item": lambda t, o: t.withColumnRenamed("v", "w").filter(t.v > 10),
    "withColumnsRenamed: several": lambda t, o: t.withColumnsRenamed({"v": "w", "k": "kk"}),
    "withColumnsRenamed: swap": lambda t, o: t.withColumnsRenamed({"v": "id2", "id": "v2"}),
    "toDF: names": lambda t, o: t.toDF("a", "b", "c", "d", "e", "f", "g", "h"),
    "toDF: odd": lambda t, o: t.select("id", "k").toDF("a.b", "c d").select("`a.b`"),
    "to: schema": lambda t, o: t.to(T.StructType.fromDDL("v long, k string, id long")),
    "to: nested": lambda t, o: t.to(T.StructType.fromDDL("s struct<b: string, a: long>, id long")),
    "to: nested missing": lambda t, o: t.to(T.StructType.fromDDL("s struct<b: string>, id long")),
    "to: missing column": lambda t, o: t.to(T.StructType.fromDDL("id long, zz string")),
    "to: not null": lambda t, o: t.to(T.StructType([T.StructField("id", T.LongType(), False)])),
    "to: metadata": lambda t, o: t.to(
        T.StructType([T.StructField("id", T.LongType(), True, {"comment": "x"})])
    ),
    "to: case": lambda t, o: t.to(T.StructType.fromDDL("ID long, K string")),
    "drop: name": lambda t, o: t.drop("v"),
    "drop: case": lambda t, o: t.drop("V"),
    "drop: missing": lambda t, o: t.drop("nope", "v"),
    "drop: item": lambda t, o: t.drop(t["v"]),
    "drop: items and names": lambda t, o: t.drop(t.v).drop("k"),
    "drop: col": lambda t, o: t.drop(F.col("v")),
    "drop: col of alias": lambda t, o: t.alias("x").drop(F.col("x.v")),
    "drop: odd": lambda t, o: t.drop("odd.na`me"),
    "drop: odd quoted": lambda t, o: t.drop("`odd.na``me`"),
    "drop: odd col": lambda t, o: t.drop(F.col("`odd.na``me`")),
    "drop: after join": lambda t, o: t.join(o, t.k == o.k).drop(o.k),
    "drop: after join by name": lambda t, o: t.join(o, t.k == o.k).drop("k"),
    "drop: after filter": lambda t, o: t.filter(t.v > 10).drop(t.v),
    "drop: item replaced": lambda t, o: t.withColumn("v", F.lit(1)).drop(t.v),
    "drop: item of the new frame": lambda t, o: t.withColumn("v", F.lit(1)).transform(
        lambda new: new.drop(new.v)
    ),
    "drop: right item of a self-join": lambda t, o: t.transform(
        lambda t, u: t.join(u, t.k == u.k, "left").drop(u.k), _most(t)
    ),
    "drop: right item of a cross join with itself": lambda t, o: t.transform(
        lambda t, u: t.crossJoin(u).drop(u.k), _most(t)
    ),
    "drop: item of a column that was aggregated": lambda t, o: _most(t, "v").join(t, "k").drop(t.v),
    "drop: left item of a self-join": lambda t, o: t.transform(
        lambda t, u: t.join(u, t.k == u.k, "left").drop(t.k, u.m), _most(t)
    ),
    "drop: items of a self-join by name": lambda t, o: t.transform(
        lambda t, u: t.join(u, "k", "left").drop(u.k, u.v), _most(t, "v")
    ),
    "drop: left item of a self-join from the right": lambda t, o: t.transform(
        lambda t, u: u.join(t, t.k == u.k, "right").drop(u.k), _most(t)
    ),
    "drop: name of a self-join": lambda t, o: (
        t.alias("a")
        .join(_most(t).alias("b"), F.col("a.k") == F.col("b.k"), "left")
        .drop(F.col("b.k"))
    ),
    "drop: item of the first of a union": lambda t, o: (
        t.select("k", "v").union(o.select("k", "id")).drop(t.k)
    ),
    "drop: item of the second of a union": lambda t, o: (
        t.select("k", "v").union(o.select("k", "id")).drop(o.k)
    ),
    "drop: item that a union casts": lambda t, o: (
        t.select("v", "id").union(o.select("n", "p")).drop(t.id)
    ),
    "drop: item of the second of a union by name": lambda t, o: (
        t.select("k").unionByName(o.select("k", "p"), allowMissingColumns=True).drop(o.p)
    ),
    "drop: item of the first of a difference": lambda t, o: (
        t.select("k", "v").subtract(o.select("k", "id")).drop(t.k)
    ),
    "drop: item of the second of an intersection": lambda t, o: (
        t.select("k", "v").intersect(o.select("k", "id")).drop(o.k)
    ),
    "drop: item that was computed": lambda t, o: t.select("k", (t.v + 1).alias("v")).drop(t.v),
    "drop: item that was selected": lambda t, o: t.select("k", t.v, "`odd.na``me`").drop(
        t.v, t["`odd.na``me`"]
    ),
    "drop: item of a key": lambda t, o: t.groupBy("k").count().drop(t.k),
    "drop: item of an odd key": lambda t, o: (
        t.groupBy("`odd.na``me`").count().drop(t["`odd.na``me`"])
    ),
    "drop: item filled": lambda t, o: t.fillna(0).drop(t.v),
    "drop: item filled as one of a subset": lambda t, o: t.na.fill({"V": 1}).drop(t.v),
    "drop: item filled before a join": lambda t, o: t.fillna(0).join(o, t.k == o.k).drop(t.v),
    "drop: item of another type than filled": lambda t, o: t.fillna(0).drop(t.k),
    "drop: item beside the subset filled": lambda t, o: t.na.fill(0, ["v"]).drop(t.id),
    "drop: item of the filled frame": lambda t, o: t.fillna(0).transform(lambda n: n.drop(n.v)),
    "drop: item with values replaced": lambda t, o: t.replace(20, 21).drop(t.v),
    "drop: item with texts replaced": lambda t, o: t.na.replace("a", "z").drop(t.k),
    "drop: item beside values replaced": lambda t, o: t.na.replace("a", "z").drop(t.v),
    "drop: item of renamed columns": lambda t, o: t.toDF(*t.columns).drop(t.v),
    "drop: item beside one renamed": lambda t, o: t.withColumnRenamed("v", "w").drop(t.k),
    "drop: nested": lambda t, o: t.drop("s.a"),
    # missing values
    "fillna: number": lambda t, o: t.fillna(0),
    "fillna: text": lambda t, o: t.fillna("none"),
    "fillna: dict": lambda t, o: t.fillna({"v": 1, "k": "z"}),
    "fillna: subset": lambda t, o: t.fillna(5, subset=["v", "id"]),
    "fillna: subset text": lambda t, o: t.fillna(5, "v"),
    "fillna: float": lambda t, o: o.fillna(1.5),
    "fillna: bool": lambda t, o: t.fillna(True),
    "fillna: odd": lambda t, o: t.fillna({"`odd.na``me`": 1}),
    "na.fill: number": lambda t, o: t.na.fill(0, ["v"]),
    "dropna: any": lambda t, o: t.dropna(),
    "dropna: all": lambda t, o: t.dropna("all"),
    "dropna: thresh": lambda t, o: t.dropna(thresh=7),
    "dropna: subset": lambda t, o: t.dropna(subset=["v"]),
    "dropna: subset text": lambda t, o: t.dropna(subset="k"),
    "dropna: subset case": lambda t, o: t.dropna(subset=["K"]),
    "dropna: subset tuple": lambda t, o: t.dropna(subset=("k", "v")),
    "na.drop: any": lambda t, o: t.na.drop(),
    "replace: value": lambda t, o: t.replace(20, 21),
    "replace: dict": lambda t, o: t.replace({"a": "A", "b": None}),
    "replace: lists": lambda t, o: t.replace([10, 20], [1, 2], ["v"]),
    "replace: subset": lambda t, o: t.replace("a", "z", "k"),
    "na.replace: value": lambda t, o: t.na.replace("a", "z"),
    # unpivot
    "unpivot: names": lambda t, o: (
        t.select("id", "v", "odd.na`me" if 0 else "v")
        .toDF("id", "v", "w")
        .unpivot("id", ["v", "w"], "what", "x")
    ),
    "unpivot: items": lambda t, o: t.unpivot(t.id, [t.v], "what", "x"),
    "unpivot: cols": lambda t, o: t.unpivot(["id", F.col("k")], [F.col("v")], "what", "x"),
    "unpivot: all others": lambda t, o: (
        t.select("id", "v").withColumn("w", t.v).unpivot(["id"], None, "what", "x")
    ),
    "unpivot: no ids": lambda t, o: t.select("id", "v").unpivot([], ["id", "v"], "what", "x"),
    "unpivot: other types": lambda t, o: t.unpivot(["k"], ["id", "v"], "what", "x"),
    "unpivot: field": lambda t, o: t.unpivot(["id"], ["s.a", "v"], "what", "x"),
    "unpivot: odd": lambda t, o: t.unpivot(["id"], ["`odd.na``me`", "v"], "what", "x"),
    "unpivot: ids case": lambda t, o: t.select("id", "v").unpivot(["ID"], None, "what", "x"),
    "melt: names": lambda t, o: t.melt("id", ["v"], "what", "x"),
    # rows as they are
    "filter: item": lambda t, o: t.filter(t["v"] > 10),
    "filter: text": lambda t, o: t.filter("s.a = 1 or `odd.na``me` = 8"),
    "filter: col of alias": lambda t, o: t.alias("x").filter(F.col("x.k") == "a"),
    "filter: text of alias": lambda t, o: t.alias("x").filter("x.k = 'a' and x.s.a = 1"),
    "filter: item after drop": lambda t, o: t.select("id", "k").filter(t.v > 10),
    "filter: item of other case": lambda t, o: t.filter(t["K"] == "a"),
    "filter: field": lambda t, o: t.filter(t.s.a == 1),
    "filter: field item": lambda t, o: t.filter(t["s.a"] == 1),
    "filter: replaced column": lambda t, o: t.withColumn("v", t.v + 100).filter(t.v < 25),
    "filter: condition as item": lambda t, o: t[t.v > 10],
    "where: text": lambda t, o: t.where("k is null"),
    "alias: again": lambda t, o: t.alias("x").alias("y").select("y.k"),
    "alias: through filter": lambda t, o: t.alias("x").filter("v > 10").select("x.k", F.col("x.v")),
    "alias: through select": lambda t, o: t.alias("x").select("x.k", "v").filter("x.k = 'a'"),
    "alias: through withColumn": lambda t, o: t.alias("x").withColumn("w", F.lit(1)).select("x.k"),
    "alias: through drop": lambda t, o: t.alias("x").drop("v").select("x.k"),
    "alias: through rename": lambda t, o: t.alias("x").withColumnRenamed("v", "w").select("x.k"),
    "alias: through order": lambda t, o: t.alias("x").orderBy("x.v").select("x.k", "x.id"),
    "alias: through distinct": lambda t, o: t.select("k").alias("x").distinct().select("x.k"),
    "alias: through union": lambda t, o: (
        t.select("k").alias("x").union(o.select("k")).select("x.k")
    ),
    "alias: through limit": lambda t, o: t.alias("x").orderBy("id").limit(2).select("x.k"),
    "alias: through fillna": lambda t, o: t.alias("x").fillna(0).select("x.k"),
    "alias: through dropna": lambda t, o: t.alias("x").dropna().select("x.k"),
    "alias: through semi": lambda t, o: t.alias("x").join(o, "k", "semi").select("x.v"),
    "alias: through semi condition": lambda t, o: (
        t.alias("x").join(o.alias("y"), F.col("x.k") == F.col("y.k"), "semi").select("x.v")
    ),
    "alias: through anti": lambda t, o: t.alias("x").join(o, "k", "anti").select("x.v"),
    "alias: through dropDuplicates": lambda t, o: t.alias("x").dropDuplicates(["k"]).select("x.k"),
    "alias: through intersect": lambda t, o: (
        t.select("k").alias("x").intersect(o.select("k")).select("x.k")
    ),
    "alias: through subtract": lambda t, o: (
        t.select("k").alias("x").subtract(o.select("k")).select("x.k")
    ),
    "alias: through explode": lambda t, o: (
        t.alias("x").withColumn("e", F.explode("tags")).select("x.k", "e")
    ),
    "alias: through unpivot": lambda t, o: t.alias("x").unpivot(["x.id"], ["v"], "a", "b"),
    "withWatermark: batch": lambda t, o: t.withWatermark("at", "10 seconds"),
    "orderBy: item": lambda t, o: t.orderBy(t["v"].desc(), t.id),
    "orderBy: name": lambda t, o: t.orderBy("k", F.desc("id")),
    "orderBy: ascending": lambda t, o: t.orderBy(["k", "id"], ascending=[0, 1]),
    "orderBy: position": lambda t, o: t.orderBy(2, -1),
    "orderBy: dropped column": lambda t, o: t.select("k").orderBy(t.id),
    "orderBy: field": lambda t, o: t.orderBy("s.a", t.id),
    "sort: item": lambda t, o: t.sort(t.id.desc()),
    "sortWithinPartitions: item": lambda t, o: t.sortWithinPartitions(t.v),
    "limit: some": lambda t, o: t.orderBy("id").limit(2),
    "limit: none": lambda t, o: t.limit(0),
    "offset: some": lambda t, o: t.orderBy("id").offset(3),
    "sample: all": lambda t, o: t.sample(1.0),
    "sample: seed": lambda t, o: t.sample(False, 0.5, 7),
    "repartition: item": lambda t, o: t.repartition(2, t.k),
    "repartition: name": lambda t, o: t.repartition("k"),
    "repartitionByRange: item": lambda t, o: t.repartitionByRange(2, t["id"]),
    "repartitionById: item": lambda t, o: t.repartitionById(2, F.col("v") % 2),
    "coalesce: one": lambda t, o: t.coalesce(1),
    "hint: broadcast": lambda t, o: t.hint("broadcast"),
    "persist: it": lambda t, o: t.persist(),
    "cache: it": lambda t, o: t.cache(),
    "transform: it": lambda t, o: t.transform(lambda f, n: f.filter(f.v > n), 10),
    "[]: names": lambda t, o: t[["k", "v"]],
    "[]: position": lambda t, o: t.select(t[0], t[-1]),
    # groups
    "groupBy: item": lambda t, o: t.groupBy(t["k"]).count(),
    "groupBy: attribute": lambda t, o: t.groupBy(t.k).count(),
    "groupBy: case": lambda t, o: t.groupBy("K").count(),
    "groupBy: item case": lambda t, o: t.groupBy(t["K"]).count(),
    "groupBy: attribute after filter": lambda t, o: t.filter("id < 4").groupBy(t.k).count(),
    "groupBy: expression": lambda t, o: t.groupBy(t["id"] % 2).agg(F.max(t["id"])),
    "groupBy: position": lambda t, o: t.groupBy(2).count(),
    "groupBy: positions": lambda t, o: t.groupBy(2, 3).agg(F.max("id")),
    "groupBy: position zero": lambda t, o: t.groupBy(0).count(),
    "groupBy: position beyond": lambda t, o: t.groupBy(99).count(),
    "groupBy: position of odd": lambda t, o: t.groupBy(8).count(),
    "groupBy: casts": lambda t, o: t.groupBy(
        t.v.cast("string"), t["V"].cast("decimal(10,2)"), t.k.try_cast("int")
    ).count(),
    "groupBy: cast by name": lambda t, o: t.groupBy(F.col("v").cast("string")).count(),
    "groupBy: cast with a time zone": lambda t, o: t.groupBy(t.at.cast("string")).count(),
    "groupBy: cast of an array": lambda t, o: t.groupBy(t.tags.cast("array<string>")).count(),
    "groupBy: casts of fields": lambda t, o: t.groupBy(
        t["s.a"].cast("string"), t.s.a.cast("string")
    ).count(),
    "groupBy: cast of odd": lambda t, o: t.groupBy(t["`odd.na``me`"].cast("string")).count(),
    "groupBy: cast named": lambda t, o: t.groupBy(t.v.cast("string").alias("w (x)")).count(),
    "groupBy: literal": lambda t, o: t.groupBy(F.lit("x")).count(),
    "groupBy: literal number": lambda t, o: t.groupBy(F.lit(2)).count(),
    "groupBy: alias": lambda t, o: t.alias("x").groupBy(F.col("x.k")).count(),
    "groupBy: alias text": lambda t, o: t.alias("x").groupBy("x.k").agg(F.sum("x.v")),
    "groupBy: alias expression": lambda t, o: t.alias("x").groupBy(F.upper("x.k")).count(),
    "groupBy: named expression": lambda t, o: t.groupBy((t.id % 2).alias("odd")).count(),
    "groupBy: field": lambda t, o: t.groupBy("s.a").count(),
    "groupBy: field of alias": lambda t, o: t.alias("x").groupBy("x.s.a").count(),
    "groupBy: field item": lambda t, o: t.groupBy(t["s.a"]).count(),
    "groupBy: field attribute": lambda t, o: t.groupBy(t.s.a).count(),
    "groupBy: field get": lambda t, o: t.groupBy(F.col("s").getField("a")).count(),
    "groupBy: struct": lambda t, o: t.groupBy("s").count(),
    "groupBy: array": lambda t, o: t.groupBy(t.tags).count(),
    "groupBy: odd": lambda t, o: t.groupBy("`odd.na``me`").agg(F.count(t.k)),
    "groupBy: odd item": lambda t, o: t.groupBy(t["`odd.na``me`"]).count(),
    "groupBy: list": lambda t, o: t.groupBy(["k", t.v]).count(),
    "groupBy: two fields of a name": lambda t, o: t.groupBy("s.a", F.col("v").alias("a")).count(),
    "groupBy: same twice": lambda t, o: t.groupBy("k", "k").count(),
    "groupBy: window": lambda t, o: t.groupBy(F.window("at", "1 minute")).count(),
    "groupBy: window item": lambda t, o: t.groupBy(F.window(t.at, "1 minute"), t.k).agg(F.sum(t.v)),
    "groupBy: sliding": lambda t, o: t.groupBy(F.window("at", "1 minute", "30 seconds")).count(),
    "groupBy: window alias": lambda t, o: t.groupBy(F.window("at", "1 minute").alias("w"), "k").agg(
        F.max("v").alias("hi")
    ),
    "groupBy: session": lambda t, o: t.groupBy(F.session_window("at", "40 seconds")).count(),
    "groupBy: session item": lambda t, o: t.groupBy("k", F.session_window(t.at, "40 seconds")).agg(
        F.sum(t.v)
    ),
    "groupBy: window of window": lambda t, o: (
        t.groupBy(F.window("at", "1 minute"))
        .count()
        .groupBy(F.window(F.window_time("window"), "2 minutes"))
        .agg(F.sum("count"))
    ),
    "groupBy: after rename": lambda t, o: t.withColumnRenamed("k", "kk").groupBy("kk").count(),
    "groupBy: after rename, old item": lambda t, o: (
        t.withColumnRenamed("k", "kk").groupBy(t.k).count()
    ),
    "groupBy: after select expression": lambda t, o: (
        t.select((t.v + 1).alias("w"), "k").groupBy("w").agg(F.first("k", True))
    ),
    "groupby: item": lambda t, o: t.groupby(t.k).count(),
    "rollup: items": lambda t, o: t.rollup(t["k"], t["id"]).agg(F.sum(t["v"])),
    "rollup: names": lambda t, o: t.rollup("k", "v").count(),
    "rollup: grouping": lambda t, o: t.rollup("k").agg(F.grouping("k"), F.grouping_id()),
    "rollup: grouping item": lambda t, o: t.rollup(t.k).agg(F.grouping(t.k), F.sum("v")),
    "rollup: cast": lambda t, o: t.rollup(t.v.cast("string"), t.k).agg(F.sum(t.id)),
    "rollup: position": lambda t, o: t.rollup(2).count(),
    "rollup: field": lambda t, o: t.rollup("s.a").count(),
    "cube: attribute": lambda t, o: t.cube(t.k).agg(F.count(t.id)),
    "cube: cast": lambda t, o: t.cube(t.v.cast("string")).count(),
    "cube: names": lambda t, o: t.cube("k", "v").agg(F.max("id").alias("m")),
    "agg: item": lambda t, o: t.groupBy("k").agg(F.max(t["id"]), F.sum(t.v).alias("s")),
    "agg: no keys": lambda t, o: t.groupBy().agg(F.max(t["id"]), F.avg(t.v), F.count("*")),
    "agg: dict": lambda t, o: t.groupBy("k").agg({"v": "max", "id": "count"}),
    "agg: dict star": lambda t, o: t.groupBy("k").agg({"*": "count"}),
    "agg: dict mean": lambda t, o: t.groupBy("k").agg({"v": "mean"}),
    "agg: dict other words": lambda t, o: t.groupBy("k").agg({"v": "stddev", "id": "min"}),
    "agg: dict first": lambda t, o: t.groupBy("id").agg({"v": "first", "k": "collect_list"}),
    "agg: dict case": lambda t, o: t.groupBy("k").agg({"v": "MAX"}),
    "agg: dict field": lambda t, o: t.groupBy("k").agg({"s.a": "max"}),
    "agg: dict odd": lambda t, o: t.groupBy("k").agg({"`odd.na``me`": "max"}),
    "agg: dict distinct": lambda t, o: t.groupBy("k").agg({"v": "approx_count_distinct"}),
    "agg: distinct": lambda t, o: t.groupBy("k").agg(F.count_distinct("v"), F.sum_distinct(t.v)),
    "agg: count distinct item": lambda t, o: t.groupBy().agg(F.count_distinct(t.k, t["v"])),
    "agg: star": lambda t, o: t.groupBy("k").agg(F.count("*")),
    "agg: count of item star": lambda t, o: t.drop("m").groupBy("k").agg(F.count(t["*"])),
    "agg: count of one": lambda t, o: t.groupBy("k").agg(F.count(F.lit(1))),
    "agg: expression": lambda t, o: t.groupBy("k").agg(F.max(t.v) - F.min(t["v"]), F.max(t.v + 1)),
    "agg: of key": lambda t, o: t.groupBy("k").agg(F.upper(t.k), F.max("k")),
    "agg: cast of key": lambda t, o: t.groupBy(t.v).agg(t.v.cast("string"), F.count("*")),
    "agg: casts": lambda t, o: t.groupBy("k").agg(
        F.max(t.v.cast("string")), F.max(t["`odd.na``me`"].cast("decimal(9,1)"))
    ),
    "agg: field": lambda t, o: t.groupBy("k").agg(F.max("s.a"), F.max(t["s.a"]), F.min(t.s.b)),
    "agg: text": lambda t, o: t.groupBy("k").agg(F.expr("sum(v) filter (where id > 1)")),
    "agg: collect": lambda t, o: t.groupBy("k").agg(F.sort_array(F.collect_list(t.v))),
    "agg: struct": lambda t, o: t.groupBy("k").agg(F.max(F.struct(t.v, t.id))),
    "agg: max by": lambda t, o: t.groupBy("k").agg(F.max_by(t.v, t.id)),
    "agg: case": lambda t, o: t.groupBy("k").agg(F.sum(F.when(t.v > 10, 1).otherwise(0))),
    "agg: alias of frame": lambda t, o: (
        t.alias("x").groupBy("x.k").agg(F.max("x.v"), F.min("x.s.a"))
    ),
    "agg: literal": lambda t, o: t.groupBy("k").agg(F.lit(1), F.count("*")),
    "agg: same names": lambda t, o: t.groupBy("k").agg(F.max("v"), F.max("v")),
    "agg: name of key": lambda t, o: t.groupBy("k").agg(F.max("v").alias("k")),
    "agg: filter behind": lambda t, o: t.groupBy("k").agg(F.sum("v").alias("s")).filter("s > 20"),
    "agg: item behind": lambda t, o: t.groupBy(t.k).agg(F.sum(t.v).alias("s")).filter(t.k == "a"),
    "agg: item behind select": lambda t, o: t.groupBy("k").count().select(t.k, "count"),
    "agg: item order behind": lambda t, o: t.groupBy(t.k).count().orderBy(t.k),
    "count: item": lambda t, o: t.groupBy(t.k, t.v).count(),
    "count: none": lambda t, o: t.groupBy().count(),
    "sum: names": lambda t, o: t.groupBy("k").sum("v", "id"),
    "sum: all": lambda t, o: t.groupBy("k").sum(),
    "sum: key is a number": lambda t, o: t.groupBy("v").sum(),
    "sum: no group": lambda t, o: t.groupBy().sum(),
    "sum: case": lambda t, o: t.groupBy("k").sum("V"),
    "sum: field": lambda t, o: t.groupBy("k").sum("s.a"),
    "sum: text column": lambda t, o: t.groupBy("v").sum("k"),
    "sum: odd": lambda t, o: t.groupBy("k").sum("odd.na`me"),
    "avg: all": lambda t, o: t.groupBy("k").avg(),
    "avg: name": lambda t, o: t.groupBy(t.k).avg("v"),
    "mean: all": lambda t, o: t.groupBy("k").mean(),
    "mean: name": lambda t, o: t.groupBy("k").mean("v"),
    "min: name": lambda t, o: t.groupBy("k").min("v"),
    "min: all": lambda t, o: t.groupBy("k").min(),
    "max: all": lambda t, o: t.groupBy("k").max(),
    "max: window": lambda t, o: t.groupBy(F.window("at", "1 minute")).max("v"),
    "pivot: values": lambda t, o: t.groupBy(t["k"]).pivot("id", [1, 2]).agg(F.sum(t["v"])),
    "pivot: no values": lambda t, o: t.groupBy("k").pivot("v").count(),
    "pivot: cast": lambda t, o: t.groupBy(t.v.cast("string")).pivot("k", ["a"]).sum("id"),
    "pivot: several": lambda t, o: (
        t.groupBy("k").pivot("v", [10, 20]).agg(F.max("id"), F.min("id"))
    ),
    "pivot: named": lambda t, o: t.groupBy("k").pivot("v", [10]).agg(F.max("id").alias("m")),
    "pivot: several named": lambda t, o: (
        t.groupBy("k").pivot("v", [10]).agg(F.max(t.id).alias("m"), F.min(t["id"]))
    ),
    "pivot: text": lambda t, o: t.groupBy("v").pivot("k", ["a", "b"]).sum("id"),
    "pivot: empty text": lambda t, o: t.fillna("").groupBy("id").pivot("k", ["", "a"]).sum("v"),
    "pivot: empty text found": lambda t, o: t.fillna("").groupBy("id").pivot("k").sum("v"),
    "pivot: null": lambda t, o: t.groupBy("v").pivot("k").count(),
    "pivot: null given": lambda t, o: t.groupBy("v").pivot("k", ["a", None]).count(),
    "pivot: no keys": lambda t, o: t.groupBy().pivot("k", ["a", "b"]).sum("v"),
    "pivot: no keys found": lambda t, o: t.groupBy().pivot("k").sum("v"),
    "pivot: no keys, empty": lambda t, o: t.filter("id > 99").groupBy().pivot("k").sum("v"),
    "pivot: no keys, empty, values": lambda t, o: (
        t.filter("id > 99").groupBy().pivot("k", ["a"]).sum("v")
    ),
    "pivot: empty": lambda t, o: t.filter("id > 99").groupBy("v").pivot("k").sum("id"),
    "pivot: name of key": lambda t, o: t.groupBy("v").pivot("k", ["a", "v"]).sum("id"),
    "pivot: odd values": lambda t, o: t.groupBy("v").pivot("k", ["a.b", "c`d"]).sum("id"),
    "pivot: field": lambda t, o: t.groupBy("k").pivot("s.a", [1, 2]).sum("v"),
    "pivot: double": lambda t, o: o.groupBy("k").pivot("p").count(),
    "pivot: dates": lambda t, o: o.groupBy("k").pivot("Day").count(),
    "pivot: all numbers": lambda t, o: t.groupBy("k").pivot("v", [10]).max(),
    "pivot: window": lambda t, o: t.groupBy(F.window("at", "1 minute")).pivot("k", ["a"]).sum("v"),
    "pivot: expression key": lambda t, o: (
        t.groupBy(t.id % 2).pivot("k", ["a", "b"]).agg(F.max(t.v))
    ),
    "pivot: case": lambda t, o: t.groupBy("K").pivot("V", [10]).count(),
    # duplicates
    "distinct: all": lambda t, o: t.select("k", "v").distinct(),
    "dropDuplicates: names": lambda t, o: t.dropDuplicates(["k"]).select("k"),
    "dropDuplicates: case": lambda t, o: t.dropDuplicates(["K"]).select("k"),
    "dropDuplicates: none": lambda t, o: t.select("k").dropDuplicates(),
    "dropDuplicates: whole rows": lambda t, o: t.drop("m").dropDuplicates(),
    "dropDuplicates: map": lambda t, o: t.dropDuplicates(),
    "dropDuplicates: odd": lambda t, o: t.dropDuplicates(["odd.na`me"]).select("`odd.na``me`"),
    "dropDuplicates: item behind": lambda t, o: t.dropDuplicates(["k"]).select(t.k),
    "drop_duplicates: names": lambda t, o: t.drop_duplicates(["k", "v"]).select("k", "v"),
    # two frames
    "union: position": lambda t, o: t.select("k", "v").union(o.select("k", "id")),
    "union: other types": lambda t, o: t.select("v", "id").union(o.select("n", "p")),
    "union: nullability": lambda t, o: t.select("id").union(o.select("id")),
    "union: not null": lambda t, o: t.select("id").union(o.select("n")),
    "union: item behind": lambda t, o: t.select("k", "v").union(o.select("k", "id")).select(t.k),
    "union: itself": lambda t, o: t.union(t),
    "unionAll: position": lambda t, o: t.select("k").unionAll(o.select("k")),
    "unionByName: names": lambda t, o: t.select("k", "id").unionByName(o.select("id", "k")),
    "unionByName: case": lambda t, o: t.select("k", "id").unionByName(
        o.select(F.col("id").alias("ID"), "k")
    ),
    "unionByName: missing": lambda t, o: t.select("v", "k").unionByName(
        o.select("k", "p"), allowMissingColumns=True
    ),
    "unionByName: missing fields": lambda t, o: t.select("s").unionByName(
        o.select(F.struct(F.lit(1).alias("a"), F.lit(2).alias("c")).alias("s")),
        allowMissingColumns=True,
    ),
    "intersect: same": lambda t, o: t.select("k").intersect(o.select("k")),
    "intersect: int and bigint": lambda t, o: t.select("v").intersect(t.select("id")),
    "intersect: bigint and int": lambda t, o: t.select("id").intersect(o.select("id")),
    "intersect: not null": lambda t, o: t.select("id").intersect(o.select("n")),
    "intersect: nullable right": lambda t, o: t.select("id", "k").intersect(o.select("id", "k")),
    "intersect: struct": lambda t, o: t.select("s").intersect(t.select("s").filter("s.a = 1")),
    "intersect: whole": lambda t, o: t.drop("m").intersect(t.drop("m")),
    "subtract: same": lambda t, o: t.select("k").subtract(o.select("k")),
    "subtract: int and bigint": lambda t, o: t.select("v").subtract(t.select("id")),
    "subtract: not null": lambda t, o: t.select("id").subtract(o.select("id")),
    "subtract: two": lambda t, o: t.select("k", "v").subtract(o.select("k", "id")),
    "join: name": lambda t, o: t.join(o, "k"),
    "join: names": lambda t, o: t.join(o, ["k", "at"]),
    "join: name case": lambda t, o: t.join(o, "K"),
    "join: name of other type": lambda t, o: t.join(o, "id"),
    "join: name of other type full": lambda t, o: t.join(o, "id", "full"),
    "join: items": lambda t, o: t.join(o, t["k"] == o["k"]),
    "join: items then both": lambda t, o: t.join(o, t.k == o.k, "left").select(t.k, o.k, o["p"]),
    "join: items then agg": lambda t, o: (
        t.join(o, t["k"] == o["k"]).groupBy(t["k"]).agg(F.max(o["n"]))
    ),
    "join: list of columns": lambda t, o: t.join(o, [t.k == o.k, t.id == o.id]),
    "join: aliases": lambda t, o: (
        t.alias("a")
        .join(o.alias("b"), F.col("a.k") == F.col("b.k"))
        .select("a.k", F.col("b.k"), "b.p", "a.s.a")
    ),
    "join: aliases star": lambda t, o: (
        t.alias("a").join(o.alias("b"), F.col("a.k") == F.col("b.k")).select("a.*", "b.n")
    ),
    "join: aliases groupBy": lambda t, o: (
        t.alias("a")
        .join(o.alias("b"), F.col("a.k") == F.col("b.k"))
        .groupBy("a.k")
        .agg(F.sum("b.p"))
    ),
    "join: aliases groupBy both": lambda t, o: (
        t.alias("a")
        .join(o.alias("b"), F.col("a.k") == F.col("b.k"))
        .groupBy("a.id", "b.p")
        .agg(F.count("*"))
    ),
    "join: aliases text": lambda t, o: t.alias("a").join(
        o.alias("b"), F.expr("a.k = b.k and a.id > b.id")
    ),
    "join: self": lambda t, o: (
        t.alias("a")
        .join(t.alias("b"), F.col("a.k") == F.col("b.k"))
        .select(F.col("a.id"), F.col("b.id").alias("other"))
    ),
    "join: self, then right item": lambda t, o: t.transform(
        lambda t, u: t.join(u, t.k == u.k, "left").select(u.k), _most(t)
    ),
    "join: self by name": lambda t, o: t.select("id", "k").join(t.select("id", "v"), "id"),
    "join: left": lambda t, o: t.join(o, "k", "left"),
    "join: right": lambda t, o: t.join(o, "k", "right"),
    "join: outer": lambda t, o: t.join(o, "k", "outer"),
    "join: full_outer": lambda t, o: t.join(o, t.k == o.k, "full_outer"),
    "join: left then item of right": lambda t, o: t.join(o, "k", "left").select(t.k, o.p, o["id"]),
    "join: right then key item": lambda t, o: t.join(o, "k", "right").select("k", o.k, t.k),
    "join: outer then key item": lambda t, o: t.join(o, "k", "outer").select("k", t.k, o.k),
    "join: drop behind": lambda t, o: t.join(o, t.k == o.k).drop(o.k).select("k", "p"),
    "join: semi": lambda t, o: t.join(o, "k", "semi"),
    "join: semi column order": lambda t, o: t.join(o, "at", "left_semi"),
    "join: semi two": lambda t, o: t.join(o, ["at", "k"], "semi"),
    "join: semi case": lambda t, o: t.join(o, "K", "semi"),
    "join: semi other type": lambda t, o: t.join(o, "id", "semi"),
    "join: semi condition": lambda t, o: t.join(o, (t.k == o.k) & (t.id < o.n), "semi"),
    "join: semi item behind": lambda t, o: t.join(o, "k", "semi").select(t.v, "k"),
    "join: semi not null key": lambda t, o: t.join(t.select("id"), "id", "semi"),
    "join: anti": lambda t, o: t.join(o, "k", "anti"),
    "join: anti two": lambda t, o: t.join(o, ["at", "k"], "left_anti"),
    "join: anti other type": lambda t, o: t.join(o, "id", "anti"),
    "join: anti item behind": lambda t, o: t.join(o, t.k == o.k, "anti").select(t.v, "k"),
    "join: inner no condition": lambda t, o: t.select("id").join(o.select("n")),
    "join: field": lambda t, o: t.join(o, t.s.a == o.id).select("v", "p"),
    "join: field item": lambda t, o: t.join(o, t["s.a"] == o["id"]).select(t["s.b"], "p"),
    "join: range": lambda t, o: t.join(o, (t.at >= o.at) & (t.id < o.n)).select(t.id, o.n),
    "join: renamed": lambda t, o: t.join(o.withColumnRenamed("k", "kk"), F.col("k") == F.col("kk")),
    "join: null safe": lambda t, o: t.join(o, t.k.eqNullSafe(o.k)).select(t.id, o.n),
    "join: odd": lambda t, o: t.join(o.withColumnRenamed("id", "odd.na`me"), "odd.na`me"),
    "join: twice": lambda t, o: t.join(o, "k").join(t.select("id", "k"), "k"),
    "crossJoin: pairs": lambda t, o: t.crossJoin(o),
    "crossJoin: items": lambda t, o: t.crossJoin(o).select(t.k, o.k),
    "select: star in a function": lambda t, o: t.select(F.struct("*").alias("x")),
    "select: named columns of a struct": lambda t, o: t.select(F.struct(*t.columns[:6]).alias("x")),
    "withColumn: star in a function": lambda t, o: t.withColumn("x", F.struct("*")),
    "agg: star in a function": lambda t, o: (
        t.drop("m").groupBy("k").agg(F.count_distinct("*").alias("n"))
    ),
    "select: zip of items": lambda t, o: t.select(F.arrays_zip(t.tags, t["tags"]).alias("z")),
    "select: odd name in a struct": lambda t, o: t.select(F.struct(t["`odd.na``me`"]).alias("x")),
    "select: cast of an odd name": lambda t, o: t.select(t["`odd.na``me`"].cast("string")),
    "select: field of another case": lambda t, o: t.select(t["s.A"], t["S.a"]),
    "select: json of an aggregate": lambda t, o: (
        t.groupBy("k").agg(F.max(F.struct(t.v, t.id)).alias("top")).select("k", F.to_json("top"))
    ),
}

REFUSED = {
    "select: to json": "stands for every column",
    "select: star in a function": "stands for every column",
    "withColumn: star in a function": "stands for every column",
    "agg: star in a function": "stands for every column",
    "drop: item replaced": "was replaced since",
    "drop: item of the second of a union": "was replaced since",
    "drop: item that a union casts": "was replaced since",
    "drop: item of the second of a union by name": "was replaced since",
    "drop: item of the second of an intersection": "was replaced since",
    "drop: item that was computed": "was replaced since",
    "drop: item filled": "was replaced since",
    "drop: item filled as one of a subset": "was replaced since",
    "drop: item filled before a join": "not the one that Spark would drop",
    "drop: item with values replaced": "was replaced since",
    "drop: item with texts replaced": "was replaced since",
    "drop: item of renamed columns": "was replaced since",
    "drop: right item of a self-join": "not the one that Spark would drop",
    "drop: right item of a cross join with itself": "not the one that Spark would drop",
    "drop: item of a column that was aggregated": "not the one that Spark would drop",
    "agg: count of item star": "in a `select` only",
    "select: odd name in a struct": "a field of a struct",
    "groupBy: two fields of a name": "two columns called `a`",
    "groupBy: same twice": "two columns called `k`",
    "agg: same names": r"two columns called `max\(v\)`",
    "agg: name of key": "two columns called `k`",
    "pivot: name of key": "two columns called `v`",
    "agg: of key": "cannot be used here",
    "agg: item behind select": "cannot be used here",
    "union: item behind": "cannot be used here",
}
"""Cases that Spark takes and clew refuses, with words of the reason."""

MORE = {
    "[]: position",
    "groupBy: position of odd",
    "join: self, then right item",
    "groupBy: after rename, old item",
    "sum: all",
    "sum: key is a number",
    "sum: no group",
    "avg: all",
    "mean: all",
    "min: all",
    "max: all",
    "pivot: all numbers",
}
"""Cases that clew takes and Spark refuses, most for a column with a backtick in its name."""
