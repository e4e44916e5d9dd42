"""The meaning of each function in one sentence, for ``gscope schema --functions``.

Names are those that queries use. ``s`` is a STRING, ``n`` an INT, ``x`` and ``y`` are any values;
an argument in quotes must be a constant. The reference shows the same sentences.
"""

from __future__ import annotations

_INTEGER = "A whole number: of FLOAT without its fraction, if 64 bits hold it, of text the number it spells, of IP the IPv4 value"

FAMILIES: dict[str, dict[str, str]] = {
    "numbers": {
        "abs": "The value without its sign.",
        "floor": "The next whole number below.",
        "ceil": "The next whole number above.",
        "round": "The nearest whole number, a half going away from zero.",
        "mod": "mod(x, y): x % y, with the sign of x; NULL where y is 0.",
        "sqrt": "The square root; NULL below 0.",
        "pow": "pow(x, y): x to the power of y; NULL where that is no number.",
        "log": "The natural logarithm; NULL of 0 and below.",
        "log2": "The logarithm to base 2; NULL of 0 and below.",
        "log10": "The logarithm to base 10; NULL of 0 and below.",
    },
    "choice": {
        "if_else": "if_else(c, x, y): x where c is true, otherwise y.",
        "coalesce": "The first argument that is not NULL.",
        "min_of": "The least of the arguments, NULL left out.",
        "max_of": "The greatest of the arguments, NULL left out.",
        "least": "The same as min_of.",
        "greatest": "The same as max_of.",
        "nullif": "nullif(x, y): NULL where x equals y, otherwise x.",
    },
    "casts": {
        "int": f"{_INTEGER}, of TIMESTAMP nanoseconds; NULL where there is none.",
        **dict.fromkeys(("uint", "ushort", "llong", "ullong"), "The same as int."),
        "float": "The same number as a FLOAT.",
        "bool": "Whether the number is not 0.",
        "string": "The value as text; true or false of BOOL, UTC with nine digits and a Z of TIMESTAMP.",
        "timestamp": "The time that many nanoseconds after 1970; to_timestamp takes seconds.",
        "timeval": "The same as timestamp.",
    },
    "times": {
        "date_trunc": (
            "date_trunc('minute', t): the beginning of the microsecond, millisecond, second, minute, hour, day "
            "or week (from Monday) that t is in, UTC."
        ),
        "time_bucket": "time_bucket('10 sec', t): the beginning of the bucket that t is in; one begins with 1970.",
        "to_timestamp": "The time that many seconds after 1970; of FLOAT with the fraction.",
    },
    "addresses": {
        "prefix": (
            "prefix(ip, n4, n6): the first n4 bits of an IPv4 address, n6 (or all 128) of an IPv6 one; "
            "NULL where a column gives no such length."
        ),
        "in_net": (
            "in_net[ip, '10.0.0.0/8'], in_net[ip, net, n]: whether the address is in the network; "
            "NULL where a column gives no such length."
        ),
        "is_private": "Whether the address is for private use (RFC 1918, RFC 4193).",
        "ipv4": "The IPv4 address as a number; NULL of an IPv6 one.",
        "strtoip": "The address that a text spells; NULL if it is none.",
        "community_id": (
            "community_id(protocol, srcIP, destIP, srcPort, destPort, seed): the Community ID (version 1) of a "
            "flow, the same for both directions; of ICMP the ports are type and code; seed is 0 if left out."
        ),
    },
    "text and payloads": {
        "str_match_start": "str_match_start[s, 'x']: whether s begins with x.",
        "str_match_offset": "str_match_offset[n, 'x', s]: whether x stands in s at offset n.",
        "byte_match_offset": "byte_match_offset[n, b, s]: whether the byte of s at offset n is b.",
        "str_exists_substr": "str_exists_substr[s, 'x']: whether x is somewhere in s.",
        "str_regex_match": "str_regex_match[s, 'x']: whether the regular expression x matches somewhere in s.",
        "str_extract_regex": "str_extract_regex(s, 'x'): the first part of s that matches x; NULL if none does.",
        "str_find": "str_find(s, x): the offset of x in s; NULL if it is not there.",
        "str_truncate": "str_truncate(s, n): the first n bytes.",
        "substr": "substr(s, i, n): n bytes from place i on, the first being 1; all the rest without n.",
        "substring": "The same as substr.",
        "concat": "The texts of all arguments one after the other, NULL left out.",
        "str_suffix": "str_suffix(s, n): the last n bytes.",
        "length": "How many bytes it has.",
        "lower": "The letters a to z for A to Z.",
        "upper": "The letters A to Z for a to z.",
        "string_hash": "A number of 64 bits for the text (FNV-1a).",
        "to_hex": "Two hexadecimal digits for each byte.",
        "to_int": "One to eight bytes as a number in network order; otherwise NULL.",
    },
    "application layer": {
        "http_method": "The method of an HTTP/1 request.",
        "http_host": "The host that an HTTP/1 request is for, in small letters, without the port.",
        "http_path": "The path of an HTTP/1 request, without the query.",
        "tls_sni": "The server name that a TLS ClientHello asks for, in small letters.",
        "dns_id": "The id of a DNS message, which a query and its answer have in common.",
        "dns_opcode": "The kind of a DNS message: 0 standard query, 4 NOTIFY, 5 UPDATE.",
        "dns_qname": "The name that a DNS message asks for, in small letters.",
        "dns_qtype": "The number of the record type that a DNS message asks for: 1 for A, 28 for AAAA.",
        "dns_qclass": "The class that a DNS message asks for: 1 for the Internet, 255 for any.",
        "dns_rcode": "The response code of a DNS answer: 0 no error, 3 no such name; NULL in a query.",
        "dns_answers": "How many answer records a DNS message has.",
        "dns_is_response": "Whether a DNS message is an answer.",
        "dns_authoritative": "Whether a DNS answer comes from a server of the zone itself; NULL in a query.",
        "dns_truncated": "Whether a DNS message was cut to fit its datagram.",
        "dns_address": "The address in the first A or AAAA record of a DNS answer; NULL without one.",
    },
    "order": {
        "increasing": "x, declared never to fall; packets that break it are left out and counted.",
        "decreasing": "x, declared never to rise.",
        "banded": "banded(x, n): x, declared to fall by at most n.",
        "non_temporal": "x, of which no order is to be known.",
    },
}
"""Every built-in function that queries can call; see ``queries/analysis/typing/calls.py``."""

MEANINGS = {name: text for family in FAMILIES.values() for name, text in family.items()}
"""The meaning of each function by name."""
