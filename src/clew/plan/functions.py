"""The functions of Spark that are known to give the same for the same, and to do nothing else.

Spark has functions that give another value each time (`rand`), that depend on the session, the
task or the clock (`current_user`, `spark_partition_id`, `now`), and that call any method of Java
(`reflect`). A list of those is never complete: users register functions, and Spark gets new ones.
So this is the list of the others, read off `SHOW FUNCTIONS` of Spark 4.3 and their descriptions.
What is not on it is taken as not giving the same twice, and is not built from what a store says.
Names are compared in lower case.

The same for the same rows is not yet the same for the same rows in another order. Of the aggregate
functions, `ANY_ORDER` names those that do not care; `BY_TYPE` do not care unless they add up
floating-point numbers; all others, a user's own among them, are taken to care. See `order.py`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SETTLED = frozenset(
    """
abs acos acosh add_months aes_decrypt aggregate and any any_value approx_count_distinct
approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine
approx_top_k_estimate array array_agg array_append array_compact array_contains array_distinct
array_except array_insert array_intersect array_join array_max array_min array_position
array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap
arrays_zip ascii asin asinh assert_true atan atan2 atanh avg base64 between bigint bin binary
bit_and bit_count bit_get bit_length bit_or bit_xor bitmap_and_agg bitmap_bit_position
bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg bool_and bool_or boolean
bround btrim cardinality case cast cbrt ceil ceiling char char_length character_length chr
coalesce collate collation collect_list collect_set collect_union concat concat_ws contains conv
convert_timezone corr cos cosh cot count count_if count_min_sketch counter_diff covar_pop
covar_samp crc32 csc cume_dist date date_add date_diff date_format date_from_unix_date date_part
date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear decimal
decode degrees dense_rank div double e element_at elt encode endswith equal_null every exists
exp explode explode_outer expm1 extract factorial filter find_in_set first first_value flatten
float floor forall format_number format_string from_avro from_base32 from_csv from_json
from_unixtime from_utc_timestamp from_xml get get_json_object getbit greatest grouping
grouping_id hash hex histogram_numeric hll_sketch_agg hll_sketch_estimate hll_union
hll_union_agg hmac hour hypot if ifnull ilike in initcap inline inline_outer instr int
is_valid_utf8 is_valid_variant is_variant_null isnan isnotnull isnull jaro_winkler_similarity
json_array_length json_object_keys json_tuple kll_sketch_get_n_bigint kll_sketch_get_n_double
kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double
kll_sketch_get_rank_float kll_sketch_to_string_bigint kll_sketch_to_string_double
kll_sketch_to_string_float kurtosis lag last last_day last_value lcase lead least left len
length levenshtein like listagg ln locate log log10 log1p log2 lower lpad ltrim luhn_check
make_date make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz
make_timestamp_ntz make_valid_utf8 make_ym_interval map map_concat map_contains_key map_entries
map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with mask max max_by md5
mean median min min_by minute mod mode month monthname months_between named_struct nanvl
negative next_day not nth_value ntile nullif nullifzero nvl nvl2 octet_length or overlay
parse_json parse_url percent_rank percentile percentile_approx percentile_cont percentile_disc
pi pmod posexplode posexplode_outer position positive pow power printf quarter quote radians
raise_error rank reduce regexp regexp_count regexp_extract regexp_extract_all regexp_instr
regexp_like regexp_replace regexp_substr regr_avgx regr_avgy regr_count regr_intercept regr_r2
regr_slope regr_sxx regr_sxy regr_syy repeat replace reverse right rint rlike round row_number
rpad rtrim schema_of_avro schema_of_csv schema_of_json schema_of_variant schema_of_variant_agg
schema_of_xml sec second sentences sequence sha sha1 sha2 shiftleft shiftright
shiftrightunsigned sign signum sin sinh size skewness slice smallint some sort_array soundex
space split split_part sqrt st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid stack
startswith std stddev stddev_pop stddev_samp str_to_map string string_agg struct substr
substring substring_index sum tan tanh theta_difference theta_intersection
theta_intersection_agg theta_sketch_agg theta_sketch_estimate theta_union theta_union_agg time
time_bucket time_diff time_from_micros time_from_millis time_from_seconds time_to_micros
time_to_millis time_to_seconds time_trunc timestamp timestamp_micros timestamp_millis
timestamp_nanos timestamp_seconds tinyint to_avro to_base32 to_binary to_char to_csv to_date
to_json to_number to_time to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp
to_utc_timestamp to_varchar to_variant_object to_xml transform transform_keys transform_values
translate trim trunc try_add try_aes_decrypt try_avg try_divide try_element_at try_make_interval
try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_mod try_multiply
try_parse_json try_parse_url try_subtract try_sum try_to_binary try_to_date try_to_number
try_to_time try_to_timestamp try_url_decode try_validate_utf8 try_variant_array_append
try_variant_get try_variant_insert try_variant_set tuple_difference_double
tuple_difference_integer tuple_difference_theta_double tuple_difference_theta_integer
tuple_intersection_agg_double tuple_intersection_agg_integer tuple_intersection_double
tuple_intersection_integer tuple_intersection_theta_double tuple_intersection_theta_integer
tuple_sketch_agg_double tuple_sketch_agg_integer tuple_sketch_estimate_double
tuple_sketch_estimate_integer tuple_sketch_summary_double tuple_sketch_summary_integer
tuple_sketch_theta_double tuple_sketch_theta_integer tuple_union_agg_double
tuple_union_agg_integer tuple_union_double tuple_union_integer tuple_union_theta_double
tuple_union_theta_integer typeof ucase unbase64 unhex unix_date unix_micros unix_millis
unix_nanos unix_seconds unix_timestamp upper url_decode url_encode validate_utf8 var_pop
var_samp variance variant_array_append variant_delete variant_explode variant_explode_outer
variant_get variant_insert variant_set variant_strip_nulls vector_avg vector_cosine_similarity
vector_inner_product vector_l2_distance vector_norm vector_normalize vector_sum weekday
weekofyear when width_bucket xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long
xpath_number xpath_short xpath_string xxhash64 year zeroifnull zip_with
    """.split()  # noqa: SIM905
)
"""Functions by which an expression gives the same for the same rows in the same order."""

UNSETTLED = frozenset(
    """
aes_encrypt collations curdate current_catalog current_database current_date current_path
current_schema current_time current_timestamp current_timezone current_user
input_file_block_length input_file_block_start input_file_name java_method kll_merge_agg_bigint
kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double
kll_sketch_agg_float kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float
localtime localtimestamp measure monotonically_increasing_id now python_worker_logs rand randn
random randstr range reflect session_user shuffle spark_partition_id sql_keywords try_reflect
uniform user uuid version
    """.split()  # noqa: SIM905
)
"""The other functions of Spark 4.3, so that a test can tell a new one from one that was judged.

By chance (`rand`, a sketch that drops values by lot), the clock, the session, the task, the file,
the machine, any code of Java's; or a table or view rather than an expression.
"""

ANY_ORDER = frozenset(
    """
any approx_count_distinct bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg
bool_and bool_or count count_if count_min_sketch every grouping grouping_id max median min
percentile percentile_cont percentile_disc regr_count some
    """.split()  # noqa: SIM905
)
"""Aggregate functions that give the same in whatever order the rows come."""

BY_TYPE = frozenset(("avg", "mean", "sum"))
"""Aggregate functions that give the same in any order, but for floating-point numbers."""

BY_ORDER = frozenset(
    """
any_value approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine array_agg
collect_list collect_set collect_union corr covar_pop covar_samp first first_value histogram_numeric
hll_sketch_agg hll_union_agg kurtosis last last_value listagg max_by min_by mode percentile_approx
regr_avgx regr_avgy regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
schema_of_variant_agg skewness std stddev stddev_pop stddev_samp string_agg theta_intersection_agg
theta_sketch_agg theta_union_agg try_avg try_sum tuple_intersection_agg_double
tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer
tuple_union_agg_double tuple_union_agg_integer var_pop var_samp variance vector_avg vector_sum
    """.split()  # noqa: SIM905
)
"""Aggregate functions whose result may depend on the order in which the rows come."""

SORTED_BY = frozenset(("sort_array", "array_sort", "size", "cardinality"))
"""Functions that give the same for an array in whatever order it is."""

SYMBOLS = frozenset("! != % & * + - / < << <= <=> <> = == > >= >> >>> ^ | || ~".split())  # noqa: SIM905
"""The operators that are functions as well, such as `>`."""

WINDOWS = frozenset(("window", "session_window", "window_time"))
"""Functions that Spark's analyser turns into more than an expression."""

READS_FILES = frozenset(("from_protobuf", "to_protobuf"))
"""Functions that give the same, but take the path of a file: never built from a store."""

_FILE = "input_file_name"

CUT_SHORT = "..."
"""Stands for whatever a plan's text leaves out."""

_INTERNAL = frozenset(
    """
    ansi_cast try_cast precisetimestampconversion knownnullable knownnotnull gettimestamp
    knownfloatingpointnormalized normalizenanandzero namedlambdavariable lambdafunction outer
    windowspecdefinition specifiedwindowframe unboundedpreceding$ unboundedfollowing$ currentrow$
    update_fields withfield dropfield tempresolvedcolumn toprettystring promote_precision
    checkoverflow makedecimal unscaledvalue atleastnnonnulls timestampadd timestampdiff
    json_to_structs structs_to_json csv_to_structs structs_to_csv multialias distinct
    structfield structtype arraytype maptype decimaltype pivotfirst
    """.split()  # noqa: SIM905
)
"""What an analysed plan calls that is no function of SQL, but one of Spark's own expressions."""

_CALLED = re.compile(r"(?<![\w`#@$])([A-Za-z_][\w$]*)\(")
_FOREIGN = re.compile(r"\b(Hive\w*(?:UDF|UDAF|UDTF))#")
_TYPES = re.compile(r"\b(?:decimal|char|varchar|time|timestamp_nanos)\(\d+(?:,\s*\d+)?\)")
_LEAF = re.compile(
    r"^[:\s+-]*[~'!*]*(?:Relation|RelationV2|Streaming\w*|DataSourceV2\w*|LogicalRDD|LocalRelation|"
    r"\w*ScanRelation|OneRowRelation|Range|SubqueryAlias|View|InMemoryRelation|CommandResult|Unresolved"
    r"\w*|ResolvedHint|HiveTableRelation|LogicalQueryStage|EventTimeWatermark|DataSource\w*)\b"
)
_BRANCH = re.compile(r"^[:\s]*[+:]- ")
_OF_A_FILE = re.compile(
    r"^[:\s]*[+:]- (?:Project|Filter|SubqueryAlias|"
    r"(?P<files>Relation \S*\[[^\[\]]*\] (?:parquet|orc|json|csv|text|xml|avro)\s*$))"
)
_CUT = re.compile(r"\.\.\. \d+ more fields")


def is_settled(name: str) -> bool:
    """Tell whether a function is known to give the same for the same.

    Examples:
        >>> is_settled("UPPER"), is_settled("SPARK_PARTITION_ID"), is_settled("reflect")
        (True, False, False)
    """
    return name.lower() in SETTLED | WINDOWS | READS_FILES or name in SYMBOLS


def is_known(name: str) -> bool:
    """Tell whether a name in an analysed plan is such a function, or part of Spark's own making."""
    return is_settled(name) or name.lower() in _INTERNAL or name.startswith("__pivot_")


def unsettled(lines: Sequence[str]) -> str | None:
    """Find a function in an analysed plan that is not known to give the same twice.

    A Python function is left to the caller, whom Spark tells whether it was declared so; a plan
    prints it, like a column with brackets in its name, with a number behind its brackets.

    Returns:
        Its name as the user wrote it, `CUT_SHORT` if the text of the plan was cut short, else None.
    """
    for number, line in enumerate(lines):
        # A line of its own, not one that a text with a line break in it goes on with.
        if _LEAF.match(line) and (number == 0 or _BRANCH.match(line)):
            continue
        if _CUT.search(line):
            return CUT_SHORT
        foreign = _FOREIGN.search(line)
        if foreign is not None:
            return foreign[1]
        text = _TYPES.sub("", line)
        for match in _CALLED.finditer(text):
            if is_known(match[1]) or _has_number(text, match.end()):
                continue
            if match[1].lower() != _FILE or not _is_of_a_file(lines, number):
                return match[1]
    return None


def _is_of_a_file(lines: Sequence[str], number: int) -> bool:
    """Tell whether a step is computed where files are read, so that each row is still of its file.

    Behind a join, a shuffle or a sort Spark names another file, or none.
    """
    if not re.match(r"[:\s]*(?:[+:]- )?(?:Project|Filter)\b", lines[number]):
        return False
    for line in lines[number + 1 :]:
        step = _OF_A_FILE.match(line)
        if step is None or step["files"]:
            return step is not None
    return False


def _has_number(text: str, start: int) -> bool:
    """Tell whether the bracket that is open at `start` has `#` and a number behind its end."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return re.match(r"#\d", text[at + 1 :]) is not None
    return False
