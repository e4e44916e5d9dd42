"""The queries that a view shows if the command line asks for none: a board of the traffic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gscope.cli.config.effective import Config
    from gscope.cli.session.request import QueryRequest

BOARD = (
    """DEFINE { query_name talkers; }
SELECT tb, srcIP, count(*) AS packets, sum(len) AS bytes, count_distinct(destIP) AS receivers
FROM IP
GROUP BY time/10*10 AS tb, srcIP
ORDER BY bytes DESC
LIMIT 1000""",
    """DEFINE { query_name links; }
SELECT second, interface, count(*) AS packets, sum(len) * 8 AS bits, avg(len) AS mean_length
FROM PKT
GROUP BY second(time), interface""",
    """DEFINE { query_name ports; }
SELECT tb, protocol, port, count(*) AS packets, sum(len) AS bytes
FROM IP
WHERE srcPort > 0 AND destPort > 0
GROUP BY time/10*10 AS tb, protocol, min_of(srcPort, destPort) AS port
ORDER BY bytes DESC
LIMIT 1000""",
    """DEFINE { query_name names; }
SELECT tb, name, count(*) AS questions, count_distinct(client) AS clients
FROM (SELECT time/10*10 AS tb, srcIP AS client, dns_qname(UDP_data) AS name
      FROM UDP WHERE destPort = 53 AND NOT dns_is_response(UDP_data)) AS question
WHERE name IS NOT NULL
GROUP BY tb, name
ORDER BY questions DESC
LIMIT 1000""",
    """DEFINE { query_name sites; }
SELECT tb, name, count(*) AS hellos, count_distinct(client) AS clients
FROM (SELECT time/10*10 AS tb, srcIP AS client, tls_sni(TCP_data) AS name
      FROM TCP
      WHERE byte_match_offset[0, 22, TCP_data] OR byte_match_offset[0, 20, TCP_data]) AS hello
WHERE name IS NOT NULL
GROUP BY tb, name
ORDER BY hellos DESC
LIMIT 1000""",
)
"""Sources, links, ports, names in DNS and names in TLS: seconds for links, otherwise ten of
them."""


def with_board(request: QueryRequest, config: Config) -> QueryRequest:
    """Return ``request``, with the queries of the board if it has none and asks for a view."""
    from gscope.cli.sinks.open_sink import VIEW

    if request.queries or request.expressions or config.output_format != VIEW:
        return request
    return replace(request, expressions=BOARD)
