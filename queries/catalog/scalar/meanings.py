"""The meaning of each function in one sentence, for ``gscope schema --functions``.

Names are those that queries use. ``s`` is a STRING, ``n`` an INT, ``x`` and ``y`` are any values;
an argument in quotes must be a constant. The reference shows the same sentences.
"""

from __future__ import annotations

_INTEGER = (
    "The value as an INT: FLOAT without its fraction, STRING as a decimal number, "
    "IP as the value of an IPv4 address"
)

FAMILIES: dict[str, dict[str, str]] = {
    "numbers": {
        "abs": "The absolute value.",
        "floor": "The greatest whole number that is not above the value.",
        "ceil": "The least whole number that is not below the value.",
        "round": (
            "The nearest whole number; halves round away from zero. round(x, n): to n decimals."
        ),
        "mod": "mod(x, y): the remainder x % y, with the sign of x; NULL if y is 0.",
        "sqrt": "The square root; NULL for values below 0.",
        "pow": "pow(x, y): x to the power of y; NULL if the result is not a number.",
        "log": "The natural logarithm; NULL for 0 and below.",
        "log2": "The logarithm to base 2; NULL for 0 and below.",
        "log10": "The logarithm to base 10; NULL for 0 and below.",
    },
    "choice": {
        "if_else": "if_else(c, x, y): x if c is true, otherwise y.",
        "coalesce": "The first argument that is not NULL.",
        "min_of": "The least argument; NULLs are ignored.",
        "max_of": "The greatest argument; NULLs are ignored.",
        "least": "The same as min_of.",
        "greatest": "The same as max_of.",
        "umax": "The same as max_of; publications on sampling write it so.",
        "nullif": "nullif(x, y): NULL if x equals y, otherwise x.",
    },
    "casts": {
        "int": f"{_INTEGER}, TIMESTAMP as nanoseconds since 1970; NULL if it has none in 64 bits.",
        **dict.fromkeys(("uint", "ushort", "llong", "ullong"), "The same as int."),
        "float": "The value as a FLOAT.",
        "bool": "Whether the value is not 0.",
        "string": (
            "The value as text: BOOL as true or false, TIMESTAMP in UTC with nine decimals and a Z."
        ),
        "timestamp": "The time given in nanoseconds since 1970, UTC; to_timestamp takes seconds.",
        "timeval": "The same as timestamp.",
    },
    "times": {
        "date_trunc": (
            "date_trunc('minute', t): the start of the microsecond, millisecond, second, minute, "
            "hour, day or week (from Monday) that contains t, in UTC."
        ),
        "time_bucket": (
            "time_bucket('10 sec', t): the start of the bucket that contains t, by default the "
            "packet's timestamp; buckets are counted from 1970, UTC."
        ),
        "second": "The start of the second that contains the time.",
        "minute": (
            "The start of the minute that contains the time;"
            " time / 60 % 60 is the minute of the hour."
        ),
        "hour": (
            "The start of the hour that contains the time, in UTC; time / 3600 % 24 is the hour of "
            "the day."
        ),
        "day": "The start of the day that contains the time, in UTC.",
        "to_timestamp": "The time given in seconds since 1970, UTC; FLOAT may have a fraction.",
    },
    "addresses": {
        "prefix": (
            "prefix(ip, n4, n6): the network of ip, of n4 bits for IPv4 and n6 (by default 128) "
            "for IPv6; NULL if a column has an invalid length."
        ),
        "in_net": (
            "in_net[ip, '10.0.0.0/8'], in_net[ip, net, n]: whether the address is in the network; "
            "NULL if a column has an invalid prefix length."
        ),
        "is_private": "Whether the address is private (RFC 1918) or unique local (RFC 4193).",
        "ipv4": "The IPv4 address as a number; NULL for IPv6.",
        "strtoip": "The IP address in a text; NULL if the text is not an address.",
        "community_id": (
            "community_id(protocol, srcIP, destIP, srcPort, destPort, seed): the Community ID "
            "(version 1) of a flow, equal for both directions; for ICMP, the ports are type and "
            "code; the default of seed is 0."
        ),
    },
    "lookups": {
        "asn": (
            "The number of the autonomous system that announces the address, from the lookup asn; "
            "NULL if none does."
        ),
        "country": (
            "The ISO code of the country of the address, from the lookup country; NULL if it has "
            "none."
        ),
        "network": (
            "The name of the narrowest network of the lookup networks that has the address; NULL "
            "if none has."
        ),
        "vendor": (
            "The maker of the device with the MAC address, from the lookup vendors; NULL if it has "
            "none."
        ),
        "service": (
            "service(port, protocol): the name of the service in the lookup services; NULL if it "
            "has none."
        ),
    },
    "text and payloads": {
        "str_match_start": "str_match_start[s, 'x']: whether s begins with x.",
        "str_match_offset": "str_match_offset[n, 'x', s]: whether s contains x at offset n.",
        "byte_match_offset": "byte_match_offset[n, b, s]: whether the byte of s at offset n is b.",
        "str_exists_substr": "str_exists_substr[s, 'x']: whether s contains x.",
        "str_regex_match": (
            "str_regex_match[s, 'x']: whether s contains a match of the regular expression x."
        ),
        "str_extract_regex": (
            "str_extract_regex(s, 'x'): the first match of x in s; NULL if there is none."
        ),
        "str_find": (
            "str_find(s, x): the offset of the first x in s, from 0; NULL if there is none."
        ),
        "str_truncate": "str_truncate(s, n): the first n bytes of s.",
        "substr": (
            "substr(s, i, n): n bytes of s from position i, counted from 1;"
            " without n, the rest of s."
        ),
        "substring": "The same as substr.",
        "concat": "The concatenated texts of all arguments; NULLs are ignored.",
        "str_suffix": "str_suffix(s, n): the last n bytes of s.",
        "length": "The length in bytes.",
        "lower": "The text with a to z in place of A to Z.",
        "upper": "The text with A to Z in place of a to z.",
        "string_hash": "The 64-bit FNV-1a hash of the bytes.",
        "h": "H(x): a 64-bit hash of a number, time, address or text; NULL of NULL.",
        "to_hex": "The bytes in hexadecimal, two digits each.",
        "to_int": "One to eight bytes as a number in network byte order; NULL for other lengths.",
    },
    "application layer": {
        "http_method": "The method of an HTTP/1 request.",
        "http_host": "The host of an HTTP/1 request, in lower case, without the port.",
        "http_path": "The path of an HTTP/1 request, without the query string.",
        "tls_sni": "The server name (SNI) of a TLS ClientHello, in lower case.",
        "dns_id": "The ID of a DNS message, shared by query and response.",
        "dns_opcode": "The OPCODE of a DNS message: 0 QUERY, 4 NOTIFY, 5 UPDATE.",
        "dns_qname": "The QNAME of the first question of a DNS message, in lower case.",
        "dns_qtype": "The QTYPE of the first question of a DNS message: 1 for A, 28 for AAAA.",
        "dns_qclass": "The QCLASS of the first question of a DNS message: 1 for IN, 255 for ANY.",
        "dns_rcode": "The RCODE of a DNS response: 0 NOERROR, 3 NXDOMAIN; NULL in a query.",
        "dns_answers": "The number of answer records in a DNS message (ANCOUNT).",
        "dns_is_response": "Whether a DNS message is a response (QR).",
        "dns_authoritative": "Whether a DNS response is authoritative (AA); NULL in a query.",
        "dns_truncated": "Whether a DNS message is truncated (TC).",
        "dns_address": (
            "The address in the first A or AAAA record of a DNS response; NULL if there is none."
        ),
    },
    "order": {
        "increasing": (
            "x, declared as never decreasing; packets that violate this are skipped and counted."
        ),
        "decreasing": "x, declared as never increasing.",
        "banded": "banded(x, n): x, declared as stepping back by at most n.",
        "non_temporal": "x, declared to have no order.",
    },
}
"""Every built-in function that queries can call; see ``queries/analysis/typing/calls.py``."""

MEANINGS = {name: text for family in FAMILIES.values() for name, text in family.items()}
"""The meaning of each function by name."""
