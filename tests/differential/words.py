"""What functions are given where any text would only fail: units, patterns, formats, paths.

Walk: `calls` asks `words_for` about every argument.
"""

UNITS = [
    *["year", "month", "day", "hour", "minute", "second", "milliseconds", "microseconds", "week", "quarter"],
    *["decade", "century", "millennium", "epoch", "dow", "isodow", "doy", "isoyear", "julian", "timezone"],
    *["YEAR", "days", "x", ""],
]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "+02", "EST5EDT", "x"]
LIKES = ["%", "a%", "%c", "a_c", "ab\\", "%b%", "A%", "", "\\%", "100\\%", "___", "%ä%", "_"]
REGEXES = [
    "a",
    "^a",
    "b$",
    "a.c",
    "[[:alpha:]]+",
    "(",
    "*",
    "\\d",
    "^\\s",
    "ä|ö",
    "[b-a]",
    "",
    "(a)(b)?",
    "a*?",
]
FLAGS = ["", "g", "i", "gi", "x", "n", "q"]
TIME_FORMATS = [
    *["YYYY-MM-DD HH24:MI:SS.US", "DD Mon YYYY", "Day, DDth Month YYYY", "IYYY-IW-ID", "HH12:MI AM"],
    *["J Q CC", "FMMonth FMDD", '"lit" YY', "TZ OF", "MS US SSSS", "WW W DDD D", "", "b.c. B.C.", "RM rm"],
]
NUMBER_FORMATS = [
    "999.99",
    "FM9990.00",
    "S999",
    "9,999",
    "0000",
    "PL99",
    "RN",
    "9.99EEEE",
    "$99",
    "999MI",
    "V99",
    "",
]
PATHS = ["{a}", "{b,1}", "{b,-1}", "{0}", "{x}", "{}", "{a,b}", "{-9}", "{1,0}", "{NULL}"]
SMALL = ["0", "3", "-1", "7", "1", "2"]

_SMALL_NAMES = (
    *(
        "lpad",
        "rpad",
        "repeat",
        "left",
        "right",
        "array_fill",
        "trim_array",
        "substr",
        "substring",
        "overlay",
    ),
    *("generate_series", "set_byte", "get_byte", "get_bit", "set_bit", "factorial", "<<", ">>", "make_date"),
    *(
        "make_time",
        "make_timestamp",
        "make_timestamptz",
        "make_interval",
        "ntile",
        "lag",
        "lead",
        "nth_value",
    ),
    *(
        "split_part",
        "width_bucket",
        "regexp_replace",
        "regexp_substr",
        "regexp_instr",
        "regexp_count",
        "round",
    ),
    *("trunc", "chr"),
)
_BY_PLACE: dict[tuple[str, int], list[str]] = {
    ("encode", 1): ["hex", "base64", "escape", "HEX", "x"],
    ("decode", 1): ["hex", "base64", "escape"],
    ("decode", 0): ["6162", "YWJj", "YW Jj", "YQ==", "YQ=", "zz", "a", "\\\\", "\\001\\377", "\\8", "!"],
    ("format", 0): ["%s", "%I|%L", "%2$s %1$s", "%-6s|", "%6s|", "%", "%x", "%%", "a", "%s %s"],
    ("convert_from", 1): ["UTF8", "utf-8", "LATIN1", "x"],
    ("convert_to", 1): ["UTF8", "LATIN1", "x"],
    ("unistr", 0): ["\\00e4b", "\\u0061", "\\+01F600", "\\\\", "\\x", "abc"],
    ("array_fill", 1): ["{2}", "{2,3}", "{}", "{-1}", "{NULL}", "{0}"],
    ("to_number", 0): ["12", "-1.5", "1,234.5", " 7 ", "x", ""],
    ("to_number", 1): NUMBER_FORMATS,
    ("to_date", 0): ["2024-02-29", "29 Feb 2024", "20240229", "x", "", "24/2/9", "  2024 02 29", "2024-366"],
    ("to_date", 1): [
        "YYYY-MM-DD",
        "DD Mon YYYY",
        "YY",
        "YYYYMMDD",
        "YYYY-DDD",
        "FMDD FMMM YYYY",
        "J",
        "MM DD",
    ],
    ("to_timestamp", 0): ["2024-02-29 01:02:03", "29 Feb 2024", "x", "20240229010203", "12:34 pm +02"],
    ("to_timestamp", 1): [
        "YYYY-MM-DD HH24:MI:SS",
        "DD Mon YYYY",
        "YYYY",
        "YYYYMMDDHH24MISS",
        "HH12:MI AM TZH",
    ],
    ("jsonb_path_query", 1): ["$", "$.a", "$[*]", "$.*"],
    ("normalize", 1): ["NFC", "NFD"],
}
_SMALL_NUMBERS = ("generate_series",)
_FRACTIONS = ["0", "0.5", "1", "0.25"]
_BIG_POWERS = ("power", "pow", "^", "exp", "factorial")


def words_for(name: str, arguments: tuple[str, ...], at: int) -> list[str] | None:
    """The texts that this argument is taken from; None if any value of its type will do."""
    family = arguments[at]
    if family == "text":
        return _texts_for(name, arguments, at)
    if name.startswith("percentile") and at == 0:
        return ["{0,0.5,1}", "{}", "{0.3,NULL}"] if family.endswith("[]") else [*_FRACTIONS, "2"]
    if family in ("int4", "int8", "int2") and name in _SMALL_NAMES:
        return SMALL
    if family == "float8" and name.startswith("make_"):
        return ["0", "1.5", "59.999999", "60", "-1"]
    if family == "numeric" and (name in _BIG_POWERS or name == "generate_series"):
        return ["0", "1", "2", "0.5", "-1.5", "3", "1.0", "12.25", "NaN"]
    if name in ("jsonb_set", "jsonb_insert", "#-", "jsonb_delete_path", "#>", "#>>") and at == 1:
        return PATHS
    return _BY_PLACE.get((name, at))


def _texts_for(name: str, arguments: tuple[str, ...], at: int) -> list[str] | None:
    if (name, at) in _BY_PLACE:
        return _BY_PLACE[name, at]
    is_last = at == len(arguments) - 1
    if name in ("date_trunc", "extract", "date_part") and at == 0:
        return UNITS
    if name == "timezone" or (
        name in ("date_trunc", "make_timestamptz", "date_add", "date_subtract") and is_last
    ):
        return ZONES
    if name in ("~", "~*", "!~", "!~*") and at == 1:
        return REGEXES
    if name.startswith("regexp"):
        return None if at == 0 else REGEXES if at == 1 else FLAGS if is_last and at > 1 else None
    if name.endswith(("~~", "~~*")) and at == 1:
        return LIKES
    if name == "to_char" and at == 1:
        is_time = arguments[0] in ("timestamp", "timestamptz", "interval", "date", "time")
        return TIME_FORMATS if is_time else NUMBER_FORMATS
    return None
