/** The types of columns in words that people use. */

/** @type {[RegExp, string][]} */
const WORDS = [
  [/^STRUCT\(("?)start\1 TIMESTAMP[^,]*, ("?)end\2 TIMESTAMP[^,]*\)$/, "time span"],
  [/^STRUCT/, "fields"],
  [/^MAP/, "map"],
  [/\[\d*\]$/, "list"],
  [/^TIMESTAMP/, "time, UTC"],
  [/^(U?TINY|U?SMALL|U?BIG|U?HUGE)?U?INT(EGER)?$/, "integer"],
  [/^(DOUBLE|FLOAT|REAL)$/, "number"],
  [/^DECIMAL/, "decimal"],
  [/^VARCHAR$/, "text"],
  [/^BLOB$/, "bytes"],
];

/** @param {string} type as DuckDB names it */
export function typeWords(type) {
  return WORDS.find(([pattern]) => pattern.test(type))?.[1] ?? type.toLowerCase();
}
