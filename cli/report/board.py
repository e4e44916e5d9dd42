"""The queries of a report that is asked for none, and the one that every report of captures has."""

from __future__ import annotations

OVERVIEW = "overview"

OVERVIEW_TEXT = f"""DEFINE {{ query_name {OVERVIEW}; }}
SELECT interface, count(*) AS packets, sum(len) AS bytes, avg(len) AS mean_length,
       min(timestamp) AS first, max(timestamp) AS last
FROM PKT
GROUP BY interface"""
"""What is on each interface, and from when to when."""

BOARD = (
    (
        "links",
        """DEFINE { query_name links; }
SELECT second, interface, count(*) AS packets, sum(len) * 8 AS bits
FROM PKT
GROUP BY second(time), interface""",
    ),
    (
        "protocols",
        """DEFINE { query_name protocols; }
SELECT second, protocol, count(*) AS packets, sum(len) * 8 AS bits
FROM (SELECT time, len,
             CASE protocol WHEN 1 THEN 'ICMP' WHEN 6 THEN 'TCP' WHEN 17 THEN 'UDP'
                           WHEN 58 THEN 'ICMPv6' ELSE 'protocol ' || STRING(protocol)
             END AS protocol
      FROM IP) AS named
GROUP BY second(time), protocol""",
    ),
    (
        "talkers",
        """DEFINE { query_name talkers; }
SELECT srcIP, count(*) AS packets, sum(len) AS bytes, count_distinct(destIP) AS receivers
FROM IP
GROUP BY srcIP
ORDER BY bytes DESC
LIMIT 1000""",
    ),
    (
        "ports",
        """DEFINE { query_name ports; }
SELECT protocol, port, count(*) AS packets, sum(len) AS bytes
FROM (SELECT min_of(srcPort, destPort) AS port, len,
             CASE protocol WHEN 6 THEN 'TCP' WHEN 17 THEN 'UDP' WHEN 132 THEN 'SCTP'
                           ELSE 'protocol ' || STRING(protocol)
             END AS protocol
      FROM IP WHERE srcPort > 0 AND destPort > 0) AS named
GROUP BY protocol, port
ORDER BY bytes DESC
LIMIT 1000""",
    ),
    (
        "names",
        """DEFINE { query_name names; }
SELECT name, count(*) AS questions, count_distinct(client) AS clients
FROM (SELECT srcIP AS client, dns_qname(UDP_data) AS name
      FROM UDP WHERE destPort = 53 AND NOT dns_is_response(UDP_data)) AS question
WHERE name IS NOT NULL
GROUP BY name
ORDER BY questions DESC
LIMIT 1000""",
    ),
    (
        "sites",
        """DEFINE { query_name sites; }
SELECT name, count(*) AS hellos, count_distinct(client) AS clients
FROM (SELECT srcIP AS client, tls_sni(TCP_data) AS name
      FROM TCP
      WHERE byte_match_offset[0, 22, TCP_data] OR byte_match_offset[0, 20, TCP_data]) AS hello
WHERE name IS NOT NULL
GROUP BY name
ORDER BY hellos DESC
LIMIT 1000""",
    ),
)
"""The rates of links and of protocols by the second; then sources, ports, and names in DNS and
TLS."""
