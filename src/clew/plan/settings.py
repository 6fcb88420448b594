"""The settings of a session on which results depend.

They belong to a query as its steps do: a window of a day begins elsewhere under another time zone.
So they are stored with it, and whatever is computed again is computed under the same, or not at
all. Settings that only say how fast, in how many parts or with how much memory are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.binaryOutputStyle": None,
    "spark.sql.caseSensitive": "false",
    "spark.sql.charAsVarchar": "false",
    "spark.sql.chunkBase64String.enabled": "true",
    "spark.sql.collation.allowInMapKeys": "false",
    "spark.sql.columnNameOfCorruptRecord": "_corrupt_record",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.csv.parser.columnPruning.enabled": "true",
    "spark.sql.datetime.java8API.enabled": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.defaultCatalog": "spark_catalog",
    "spark.sql.execution.pandas.convertToArrowArraySafely": "true",
    "spark.sql.execution.pyspark.binaryAsBytes": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.sql.execution.pythonUDF.pandas.intToDecimalCoercionEnabled": "false",
    "spark.sql.execution.pythonUDF.pandas.preferIntExtensionDtype": "false",
    "spark.sql.files.archive.reader.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreInvalidPartitionPaths": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoredPathSegmentRegex": "^[._]",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.function.eltOutputAsString": "false",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.icu.caseMappings.enabled": "true",
    "spark.sql.json.enableExactStringParsing": "true",
    "spark.sql.json.enablePartialResults": "true",
    "spark.sql.json.useUnsafeRow": "false",
    "spark.sql.jsonGenerator.ignoreNullFields": "true",
    "spark.sql.jsonGenerator.writeNullIfWithDefaultValue": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.optimizer.excludedRules": None,
    "spark.sql.orc.mergeSchema": "false",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96TimestampConversion": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.pivotMaxValues": "10000",
    "spark.sql.preserveCharVarcharTypeInfo": "false",
    "spark.sql.readSideCharPadding": "true",
    "spark.sql.reflect.allowList": "",
    "spark.sql.runSQLOnFiles": "true",
    "spark.sql.session.timeZone": None,
    "spark.sql.sources.partitionColumnTypeInference.enabled": "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.statefulOperator.allowMultiple": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.variable.substitute": "true",
    "spark.sql.variant.allowDuplicateKeys": "false",
    "spark.sql.variant.validateUnicodeInJsonParsing": "true",
    "spark.sql.xml.variant.respectInferSchema": "true",
}
"""Settings that can change a result, and what Spark takes if nothing is set."""

_ALWAYS = ("spark.sql.session.timeZone",)
"""What has no fixed default: the zone is then that of the machine."""
_BEGINNINGS = (
    "spark.sql.legacy.",
    "spark.sql.ansi.",
    "spark.sql.collation.",
    "spark.sql.session.collation.",
)


def settings_of(spark: SparkSession) -> dict[str, str]:
    """Read the settings of a session on which results depend, as far as they are not Spark's own.

    Spark's older ways (`spark.sql.legacy.`) all count once they are set, known here or not.
    """
    found = {name: str(spark.conf.get(name)) for name in _ALWAYS}
    for name, value in dict(spark.conf.getAll).items():
        if is_setting(name) and name not in found and value is not None:
            default = SETTINGS.get(name)
            if default is None or value.lower() != default.lower():
                found[name] = value.lower() if value.lower() in ("true", "false") else value
    return dict(sorted(found.items()))


def is_setting(name: str) -> bool:
    """Tell whether results may depend on a setting."""
    return name in SETTINGS or name.startswith(_BEGINNINGS)


def differing(known: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Name the settings that are not the same in two sessions."""
    return sorted(name for name in {*known, *now} if known.get(name) != now.get(name))


def to_set(known: Mapping[str, str], names: list[str]) -> str:
    """Write the statements that give a session the settings of another one."""
    return "; ".join(
        f'spark.conf.set("{name}", "{known[name]}")'
        if name in known
        else f'spark.conf.unset("{name}")'
        for name in names
    )
