"""The DataFrame verbs that a traced frame does not have, and what to write instead."""

from __future__ import annotations

REFUSED: dict[str, str] = {
    "agg": "write `.groupBy().agg(...)`.",
    "approxQuantile": "it gives numbers, not rows; use `.groupBy().agg(F.percentile_approx(...))`.",
    "asTable": "table arguments leave the traced frame; use `.plain.asTable()`.",
    "checkpoint": "it cuts the plan that clew follows; write the frame with provenance and trace "
    "what was written.",
    "colRegex": "it stands for several columns at once; name them in `.select(...)`.",
    "corr": "it gives a number, not rows; use `.groupBy().agg(F.corr(...))`.",
    "cov": "it gives a number, not rows; use `.groupBy().agg(F.covar_samp(...))`.",
    "createGlobalTempView": "SQL over a view is not traced; use the verbs, or `.plain` for the "
    "untraced frame.",
    "createOrReplaceGlobalTempView": "SQL over a view is not traced; use the verbs, or `.plain` "
    "for the untraced frame.",
    "createOrReplaceTempView": "SQL over a view is not traced; use the verbs, or `.plain` for the "
    "untraced frame.",
    "createTempView": "SQL over a view is not traced; use the verbs, or `.plain` for the untraced "
    "frame.",
    "crosstab": "use `.groupBy(a).pivot(b).count()`.",
    "describe": "it gives statistics, not rows; use `.plain.describe()`.",
    "exceptAll": "it counts equal rows instead of following them; use `.subtract(other)`.",
    "executionInfo": "it is about a frame that has run; use `.plain`.",
    "exists": 'a subquery looks beyond its row; use `.join(other, on=[...], how="semi")`.',
    "foreach": "side effects cannot be followed; use `.plain.foreach(...)`.",
    "foreachPartition": "side effects cannot be followed; use `.plain.foreachPartition(...)`.",
    "freqItems": "it gives statistics, not rows; use `.groupBy(...).count()`.",
    "groupingSets": "use `.rollup(...)` or `.cube(...)`, or a union of several `.groupBy(...)`.",
    "inputFiles": "use `.plain.inputFiles()`.",
    "intersectAll": "it counts equal rows instead of following them; use `.intersect(other)`.",
    "isLocal": "use `.plain.isLocal()`.",
    "lateralJoin": "a subquery looks beyond its row; use `.join(...)` or `explode`.",
    "localCheckpoint": "it cuts the plan that clew follows; use `.persist()`.",
    "mergeInto": "a merge changes rows that are there; write with `.write` or `.writeStream`.",
    "metadataColumn": 'take it before tracing: `df.select("*", "_metadata")` with `id=[...]`.',
    "nearestByJoin": "its matches depend on all rows of the other side; use `.join(...)` with a "
    "condition.",
    "pandas_api": "pandas-on-Spark is not traced; use `.plain.pandas_api()`.",
    "plot": "use `.plain.plot`.",
    "randomSplit": "use `.sample(...)`, or a filter on a hash of a key.",
    "rdd": 'RDDs are not traced; use `mapInPandas(..., carries="id")`.',
    "registerTempTable": "SQL over a view is not traced; use the verbs, or `.plain`.",
    "sameSemantics": "compare `.plain` frames.",
    "sampleBy": "use a filter, e.g. on `F.rand(seed)` and the stratum.",
    "scalar": "a subquery looks beyond its row; use `.crossJoin(...)` with the one-row frame.",
    "semanticHash": "use `.plain.semanticHash()`.",
    "stat": "its functions give numbers, not rows; use `.groupBy().agg(...)`.",
    "summary": "it gives statistics, not rows; use `.plain.summary()`.",
    "toJSON": "use `.select(F.to_json(F.struct(*frame.columns)))`.",
    "transpose": "each value would come from another row; use `.unpivot(...)` or `.pivot(...)`.",
    "withMetadata": "set column metadata before tracing.",
    "writeTo": "use `.write.saveAsTable(...)` or `.writeStream.toTable(...)`.",
    "zip": "it pairs rows by where they happen to stand; use `.join(...)` on a key.",
    "zipWithIndex": "the index depends on how rows are spread over tasks; the row's own id is "
    "`clew_id` in the sink with `.provenance(path, keep_id=True)`.",
}

REFUSED_ON_GROUPS: dict[str, str] = {
    "apply": 'use `.applyInPandas(function, schema, carries="group")`.',
    "applyInArrow": 'use `.applyInPandas(function, schema, carries="group")`.',
    "applyInPandasWithState": "the function hides which rows its state came from; use windows and "
    "aggregates.",
    "cogroup": "use `.join(...)`, or `.applyInPandas(...)` on a union of both frames.",
    "transformWithState": "the function hides which rows its state came from; use windows and "
    "aggregates.",
    "transformWithStateInPandas": "the function hides which rows its state came from; use windows "
    "and aggregates.",
}
