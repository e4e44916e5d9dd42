-- What people type first who know tcpdump, Wireshark, nfdump or SQL, as they type it.
--
-- > is the query at `-e`. ! means that it gets a hint: the test replaces what the caret marks by
-- what the hint says to write, once for each !. = is the same question to DuckDB, over what tshark
-- reads from the same capture; => compares the order of rows, too.

-- Top talkers

> SELECT src_ip, SUM(len) AS bytes FROM IP GROUP BY src_ip ORDER BY bytes DESC LIMIT 5
=> SELECT src, sum(len) FROM ip GROUP BY src ORDER BY sum(len) DESC, src LIMIT 5

> select srcip, count(*) from ip group by srcip order by count(*) desc limit 3
=> SELECT src, count(*) FROM ip GROUP BY src ORDER BY count(*) DESC, src LIMIT 3

> select src, dst, sum(bytes) as total from ip group by src, dst order by total desc limit 3
=> SELECT src, dst, sum(len) AS b FROM ip GROUP BY ALL ORDER BY b DESC, src, dst LIMIT 3

> SELECT ip.src, COUNT(*) AS n FROM IP GROUP BY ip.src ORDER BY n DESC LIMIT 2
=> SELECT src, count(*) AS n FROM ip GROUP BY src ORDER BY n DESC, src LIMIT 2

> select dst_port, count(*) as cnt from tcp group by 1 order by 2 desc limit 3
=> SELECT dport, count(*) AS n FROM tcp GROUP BY 1 ORDER BY n DESC, dport LIMIT 3

> SELECT dstport, sum(length) bytes FROM TCP GROUP BY ALL ORDER BY bytes DESC LIMIT 3
=> SELECT dport, sum(len) AS b FROM tcp GROUP BY 1 ORDER BY b DESC, dport LIMIT 3

> select src_ip, dst_ip, src_port, dst_port, proto, count(*) as packets, sum(bytes) as bytes from ip group by all order by bytes desc limit 5
=> SELECT src, dst, sport, dport, proto, count(*), sum(len) AS b FROM ip GROUP BY ALL ORDER BY b DESC, src, dst, sport, dport LIMIT 5

> SELECT srcIP, sum(len)*8 AS bits FROM IP GROUP BY srcIP ORDER BY bits DESC LIMIT 3
=> SELECT src, sum(len)*8 AS b FROM ip GROUP BY src ORDER BY b DESC, src LIMIT 3

> select sa, da, sum(len) from ip group by sa, da
= SELECT src, dst, sum(len) FROM ip GROUP BY ALL

> SELECT saddr, daddr, sport, dport, count(*) FROM udp GROUP BY saddr, daddr, sport, dport
= SELECT src, dst, sport, dport, count(*) FROM udp GROUP BY ALL

-- Totals

> SELECT count(*) FROM IP
= SELECT count(*) FROM ip

> select count(*), sum(len), avg(len), min(len), max(len) from tcp
= SELECT count(*), sum(len), avg(len), min(len), max(len) FROM tcp

> SELECT COUNT(*) FROM packets
= SELECT count(*) FROM pkt

> SELECT protocol, count(*) FROM IP GROUP BY protocol
= SELECT proto, count(*) FROM ip GROUP BY 1

> SELECT proto, count(*) AS packets, sum(len) AS bytes FROM IP GROUP BY proto ORDER BY bytes DESC
=> SELECT proto, count(*), sum(len) AS b FROM ip GROUP BY 1 ORDER BY b DESC

> select ethertype, count(*) from pkt group by ethertype
= SELECT ethertype, count(*) FROM pkt GROUP BY 1

> SELECT sum(frame.len) FROM frame
= SELECT sum(len) FROM pkt

> select sum(packets) from ip
!
= SELECT count(*) FROM ip

-- Counts a second, a minute, an hour

> SELECT time, count(*) FROM IP GROUP BY time
= SELECT t, count(*) FROM ip GROUP BY 1

> SELECT minute(time) AS m, count(*) FROM TCP GROUP BY minute(time)
= SELECT shown(t - t % 60), count(*) FROM tcp GROUP BY t - t % 60

> select minute(time) as minute, sum(len) as bytes from ip group by minute order by minute
=> SELECT shown(t - t % 60), sum(len) FROM ip GROUP BY t - t % 60 ORDER BY t - t % 60

> SELECT second(time), count(*) FROM UDP GROUP BY second(time)
= SELECT shown(t), count(*) FROM udp GROUP BY t

> select time_bucket('10 sec') as t, count(*) from ip group by t
= SELECT shown(t - t % 10), count(*) FROM ip GROUP BY t - t % 10

> SELECT date_trunc('minute', timestamp) AS minute, count(*) FROM IP GROUP BY minute
= SELECT shown(t - t % 60), count(*) FROM ip GROUP BY t - t % 60

> SELECT hour(time), count(*) FROM IP GROUP BY 1
= SELECT shown(t - t % 3600), count(*) FROM ip GROUP BY t - t % 3600

> select time/60 as m, count(*) from tcp group by m
= SELECT t // 60, count(*) FROM tcp GROUP BY 1

> select minute(timestamp) as m, src_ip, count(*) as n from ip group by m, src_ip order by n desc limit 2
=> SELECT shown(m), src, n FROM (SELECT t - t % 60 AS m, src, count(*) AS n, row_number() OVER (PARTITION BY t - t % 60 ORDER BY count(*) DESC, src) AS r FROM ip GROUP BY 1, 2) WHERE r <= 2 ORDER BY m, n DESC, src

-- Unique peers

> SELECT count(DISTINCT srcIP) FROM IP
= SELECT count(DISTINCT src) FROM ip

> select src_ip, count(distinct dst_ip) as peers from ip group by src_ip order by peers desc limit 3
=> SELECT src, count(DISTINCT dst) AS n FROM ip GROUP BY 1 ORDER BY n DESC, src LIMIT 3

> select distinct src_ip from ip
= SELECT DISTINCT src FROM ip

> select approx_count_distinct(srcip) from ip
= SELECT count(DISTINCT src) FROM ip

> SELECT src, COUNT(DISTINCT dport) AS ports FROM TCP GROUP BY src HAVING ports > 1
= SELECT src, count(DISTINCT dport) AS n FROM tcp GROUP BY 1 HAVING n > 1

> select distinct dst_ip, dst_port from tcp where src_ip = '10.0.0.1'
= SELECT DISTINCT dst, dport FROM tcp WHERE src = '10.0.0.1'

-- Names: DNS, HTTP, TLS

> SELECT dns.qry.name, count(*) FROM DNS GROUP BY dns.qry.name
= SELECT dns_name, count(*) FROM dns GROUP BY 1

> select qname, count(*) as n from dns group by qname order by n desc
=> SELECT dns_name, count(*) AS n FROM dns GROUP BY 1 ORDER BY n DESC, dns_name

> SELECT http.host, count(*) FROM HTTP WHERE http.host IS NOT NULL GROUP BY http.host
= SELECT http_host, count(*) FROM http WHERE http_host IS NOT NULL GROUP BY 1

> select http.request.method, http.host, http.request.uri from http where http.request.method = 'POST'
!
= SELECT http_method, http_host, http_uri FROM http WHERE http_method = 'POST'

> SELECT tls.handshake.extensions_server_name, count(*) FROM TCP WHERE tcp.dstport == 443 GROUP BY 1
= SELECT sni, count(*) FROM tcp WHERE dport = 443 GROUP BY 1

> select sni, count(*) from tls where sni is not null group by sni
= SELECT sni, count(*) FROM tcp WHERE sni IS NOT NULL GROUP BY 1

> SELECT dns_qname(UDP_data), count(*) FROM UDP WHERE dst_port = 53 GROUP BY 1
= SELECT dns_name, count(*) FROM udp WHERE dport = 53 GROUP BY 1

> select qname from dns where rcode = 3
= SELECT dns_name FROM dns WHERE dns_rcode = 3

> SELECT dns.qry.name FROM UDP WHERE dns.flags.rcode == 3
= SELECT dns_name FROM udp WHERE dns_rcode = 3

> select host, path from http where method = 'GET'
= SELECT http_host, http_uri FROM http WHERE http_method = 'GET'

> select src_ip, count(*) from dns where response = 0 group by src_ip
= SELECT src, count(*) FROM dns WHERE NOT dns_response GROUP BY 1

> select count(*) from dns where qname like '%.example.com'
= SELECT count(*) FROM dns WHERE dns_name LIKE '%.example.com'

> SELECT count(*) FROM dns WHERE dns.qry.type == 28
= SELECT count(*) FROM dns WHERE dns_type = 28

-- Hosts, networks, ports, protocols

> SELECT count(*) FROM IP WHERE host = '10.0.0.1'
= SELECT count(*) FROM ip WHERE src = '10.0.0.1' OR dst = '10.0.0.1'

> SELECT count(*) FROM IP WHERE host 10.0.0.1
!
= SELECT count(*) FROM ip WHERE src = '10.0.0.1' OR dst = '10.0.0.1'

> select count(*) from ip where src_ip = 10.0.0.1
= SELECT count(*) FROM ip WHERE src = '10.0.0.1'

> select count(*) from ip where ip.addr == 10.0.0.1
= SELECT count(*) FROM ip WHERE src = '10.0.0.1' OR dst = '10.0.0.1'

> SELECT count(*) FROM IP WHERE srcIP = '10.0.0.0/8'
= SELECT count(*) FROM ip WHERE src LIKE '10.%'

> select count(*) from ip where src_ip = 10.0.0.0/8 and dst_ip != 10.0.0.0/8
= SELECT count(*) FROM ip WHERE src LIKE '10.%' AND NOT dst LIKE '10.%'

> select count(*) from ip where src_ip in ('10.0.0.0/8', '192.168.0.0/16')
= SELECT count(*) FROM ip WHERE src LIKE '10.%' OR src LIKE '192.168.%'

> SELECT count(*) FROM IP WHERE net 10.0.0.0/8
!
= SELECT count(*) FROM ip WHERE src LIKE '10.%' OR dst LIKE '10.%'

> select count(*) from ip where src_ip like '10.%'
= SELECT count(*) FROM ip WHERE src LIKE '10.%'

> SELECT count(*) FROM TCP WHERE tcp.port == 443
= SELECT count(*) FROM tcp WHERE sport = 443 OR dport = 443

> select count(*) from tcp where port = 80
= SELECT count(*) FROM tcp WHERE sport = 80 OR dport = 80

> SELECT count(*) FROM UDP WHERE port 53
!
= SELECT count(*) FROM udp WHERE sport = 53 OR dport = 53

> select count(*) from tcp where dport in (80, 443)
= SELECT count(*) FROM tcp WHERE dport IN (80, 443)

> SELECT count(*) FROM TCP WHERE dport BETWEEN 1 AND 1023
= SELECT count(*) FROM tcp WHERE dport BETWEEN 1 AND 1023

> SELECT count(*) FROM IP WHERE proto = 'tcp' AND dst_port = 443
= SELECT count(*) FROM tcp WHERE dport = 443

> select count(*) from ip where protocol = 'udp'
= SELECT count(*) FROM udp

> select count(*) from ip where tcp.dstport == 80 && ip.src == 10.0.0.1
= SELECT count(*) FROM tcp WHERE dport = 80 AND src = '10.0.0.1'

> select count(*) from ip where not (port = 22 or port = 80)
= SELECT count(*) FROM ip WHERE 22 NOT IN (sport, dport) AND 80 NOT IN (sport, dport)

> select count(*) from ip where src_ip != 10.0.0.1
= SELECT count(*) FROM ip WHERE src <> '10.0.0.1'

> select count(*) from ip where port != 53
= SELECT count(*) FROM ip WHERE sport <> 53 AND dport <> 53

> SELECT count(*) FROM IP WHERE is_private(srcIP)
= SELECT count(*) FROM ip WHERE src LIKE '10.%' OR src LIKE '192.168.%'

> SELECT count(*) FROM IP WHERE udp
!
= SELECT count(*) FROM udp

-- Percentiles, sizes

> SELECT percentile(len, 95) FROM IP
!
= SELECT quantile_cont(len, 0.95) FROM ip

> SELECT quantile(len, 0.95) FROM TCP
= SELECT quantile_cont(len, 0.95) FROM tcp

> select median(len) from ip
= SELECT median(len) FROM ip

> SELECT minute(time) AS m, median(len), quantile(len, 0.99) FROM IP GROUP BY m
= SELECT shown(t - t % 60), median(len), quantile_cont(len, 0.99) FROM ip GROUP BY t - t % 60

> select len/100*100 as size, count(*) from ip group by size order by size
=> SELECT len // 100 * 100 AS s, count(*) FROM ip GROUP BY s ORDER BY s

> SELECT src_ip, dst_ip, len FROM IP ORDER BY len DESC LIMIT 3
=> SELECT src, dst, len FROM ip ORDER BY len DESC, src, dst LIMIT 3

> SELECT udp.length, count(*) FROM UDP GROUP BY udp.length
= SELECT udplen, count(*) FROM udp GROUP BY 1

> SELECT tcp.srcport, tcp.dstport, tcp.len FROM TCP WHERE tcp.len > 0
= SELECT sport, dport, tcplen FROM tcp WHERE tcplen > 0

> select stddev(len) from tcp
= SELECT stddev_samp(len) FROM tcp

-- Rates and ratios

> SELECT minute(time) AS m, sum(len)/60 AS bytes_per_sec FROM IP GROUP BY m
= SELECT shown(t - t % 60), sum(len)/60 FROM ip GROUP BY t - t % 60

> select second(time) as s, sum(len)*8 as bps from ip group by s
= SELECT shown(t), sum(len)*8 FROM ip GROUP BY t

> SELECT src_ip, sum(len)*8/1e6 AS mbit FROM IP GROUP BY src_ip
= SELECT src, sum(len)*8/1e6 FROM ip GROUP BY src

> SELECT sum(SYN) / count(*) FROM TCP
= SELECT sum(flags // 2 % 2) / count(*) FROM tcp

> SELECT 100.0 * sum(RST) / count(*) AS pct FROM TCP
= SELECT 100.0 * sum(flags // 4 % 2) / count(*) FROM tcp

> select src_ip, sum(case when syn = 1 and ack = 0 then 1 else 0 end) as syns, count(*) as total from tcp group by src_ip
= SELECT src, sum(CASE WHEN flags & 18 = 2 THEN 1 ELSE 0 END), count(*) FROM tcp GROUP BY src

> select count(*) filter (where rst = 1) as resets, count(*) as total from tcp
= SELECT count(*) FILTER (WHERE flags & 4 <> 0), count(*) FROM tcp

-- CASE, LIKE, text

> SELECT CASE WHEN dport = 443 THEN 'https' WHEN dport = 80 THEN 'http' ELSE 'other' END AS service, count(*) FROM TCP GROUP BY service
= SELECT CASE WHEN dport = 443 THEN 'https' WHEN dport = 80 THEN 'http' ELSE 'other' END, count(*) FROM tcp GROUP BY 1

> select case protocol when 6 then 'tcp' when 17 then 'udp' else 'other' end as p, sum(bytes) from ip group by p
= SELECT CASE proto WHEN 6 THEN 'tcp' WHEN 17 THEN 'udp' ELSE 'other' END AS p, sum(len) FROM ip GROUP BY p

> select concat(src_ip, ':', src_port) as peer, count(*) from tcp group by peer
= SELECT src || ':' || sport, count(*) FROM tcp GROUP BY 1

-- Times

> SELECT min(time), max(time) FROM IP
= SELECT min(t), max(t) FROM ip

> select src_ip, min(timestamp) as first_seen, max(timestamp) as last_seen from ip group by src_ip
= SELECT src, shown_ns(min(ns)), shown_ns(max(ns)) FROM ip GROUP BY src

> SELECT count(*) FROM IP WHERE time >= '2023-11-14 22:01:00'
= SELECT count(*) FROM ip WHERE t >= 1699999260

> select count(*) from ip where timestamp between '2023-11-14 22:00:00' and '2023-11-14 22:01:00'
= SELECT count(*) FROM ip WHERE ns BETWEEN 1699999200000000000 AND 1699999260000000000

> SELECT max(time) - min(time) AS duration FROM IP
= SELECT max(t) - min(t) FROM ip

> select src_ip, first(time), last(time) from ip group by src_ip
= SELECT src, min(t), max(t) FROM ip GROUP BY src

> SELECT frame.time, ip.src, ip.dst, frame.len FROM IP WHERE frame.len > 200
= SELECT shown_ns(ns), src, dst, len FROM ip WHERE len > 200

-- IPv6, VLAN, MAC

> select src_ip, count(*) from ipv6 group by src_ip
= SELECT src, count(*) FROM ip WHERE version = 6 GROUP BY 1

> SELECT ipv6.src, ipv6.dst FROM IPV6 WHERE ipv6.hlim = 64
= SELECT src, dst FROM ip WHERE version = 6 AND ttl = 64

> SELECT count(*) FROM IP WHERE ip.version = 6
= SELECT count(*) FROM ip WHERE version = 6

> select count(*) from ipv6 where src_ip = 2001:db8::1
= SELECT count(*) FROM ip WHERE src = '2001:db8::1'

> SELECT vlan.id, count(*) FROM PKT WHERE vlan.id IS NOT NULL GROUP BY vlan.id
= SELECT vlan, count(*) FROM pkt WHERE vlan IS NOT NULL GROUP BY 1

> select vlan, sum(len) from pkt where vlan = 100 group by vlan
= SELECT vlan, sum(len) FROM pkt WHERE vlan = 100 GROUP BY 1

> SELECT eth.src, count(*) FROM PKT GROUP BY eth.src
= SELECT smac, count(*) FROM pkt GROUP BY 1

> select count(*) from pkt where eth.dst == ff:ff:ff:ff:ff:ff
= SELECT count(*) FROM pkt WHERE dmac = 'ff:ff:ff:ff:ff:ff'

> select distinct src_mac, src_ip from ip
= SELECT DISTINCT smac, src FROM ip

-- TCP flags, retransmissions

> SELECT count(*) FROM TCP WHERE SYN = 1 AND ACK = 0
= SELECT count(*) FROM tcp WHERE flags & 18 = 2

> select count(*) from tcp where flags = 'S'
= SELECT count(*) FROM tcp WHERE flags = 2

> SELECT src_ip, dst_ip, dst_port FROM TCP WHERE tcp.flags.syn == 1 && tcp.flags.ack == 0
= SELECT src, dst, dport FROM tcp WHERE flags & 18 = 2

> select count(*) from tcp where flags = 0x02
= SELECT count(*) FROM tcp WHERE flags = 2

> select count(*) from tcp where tcp_flags & 4 != 0
= SELECT count(*) FROM tcp WHERE flags & 4 <> 0

> SELECT count(*) FROM TCP WHERE RST
= SELECT count(*) FROM tcp WHERE flags & 4 <> 0

> select dst_ip, count(*) as resets from tcp where rst = 1 group by dst_ip
= SELECT dst, count(*) FROM tcp WHERE flags & 4 <> 0 GROUP BY 1

> SELECT src_ip, dst_ip, count_dups(seq) FROM TCP WHERE tcp.len > 0 GROUP BY 1, 2
= SELECT src, dst, count(seq) - count(DISTINCT seq) FROM tcp WHERE tcplen > 0 GROUP BY 1, 2

> select avg(window) from tcp where ack
= SELECT avg(win) FROM tcp WHERE flags & 16 <> 0

-- ICMP, ARP, DHCP, fragments, TTL

> SELECT type, code, count(*) FROM ICMP GROUP BY type, code
= SELECT icmp_type, icmp_code, count(*) FROM icmp GROUP BY 1, 2

> select count(*) from icmp where icmp.type == 8
= SELECT count(*) FROM icmp WHERE icmp_type = 8

> select icmp_type, count(*) from icmp group by icmp_type
= SELECT icmp_type, count(*) FROM icmp GROUP BY 1

> select ttl, count(*) from ip group by ttl order by ttl
=> SELECT ttl, count(*) FROM ip GROUP BY ttl ORDER BY ttl

> SELECT src_ip, min(ip.ttl) FROM IP WHERE ip.ttl < 64 GROUP BY src_ip
= SELECT src, min(ttl) FROM ip WHERE ttl < 64 GROUP BY src

> SELECT count(*) FROM UDP WHERE port = 67
= SELECT count(*) FROM udp WHERE sport = 67 OR dport = 67

> SELECT count(*) FROM DHCP
!
= SELECT count(*) FROM udp WHERE sport IN (67, 68) AND dport IN (67, 68)

> select sender_ip, sender_mac from arp
= SELECT arp_ip, arp_mac FROM arp

> SELECT arp.src.proto_ipv4, count(*) FROM ARP GROUP BY 1
= SELECT arp_ip, count(*) FROM arp GROUP BY 1

> select count(*) from arp where arp.opcode == 1
= SELECT count(*) FROM arp WHERE arp_op = 1

> select count(*) from ip where more_fragments = 1 or offset > 0
= SELECT count(*) FROM ip WHERE mf OR frag > 0

> SELECT count(*) FROM IP WHERE ip.flags.mf == 1
= SELECT count(*) FROM ip WHERE mf

-- Rows as they are

> select src_ip, dst_ip, sport, dport, flags from tcp limit 5
=> SELECT src, dst, sport, dport, flags FROM tcp ORDER BY ns LIMIT 5

> SELECT time, src_ip, dst_ip FROM TCP WHERE syn = 1 UNION ALL SELECT time, src_ip, dst_ip FROM UDP
= SELECT t, src, dst FROM tcp WHERE flags & 2 <> 0 UNION ALL SELECT t, src, dst FROM udp

-- Without a column that orders the rows

> SELECT 'tcp', count(*) FROM TCP UNION ALL SELECT 'udp', count(*) FROM UDP
=> SELECT 'tcp', count(*) FROM tcp UNION ALL SELECT 'udp', count(*) FROM udp

> SELECT 'tcp' AS proto, count(*) AS n, sum(len) AS bytes FROM TCP UNION ALL SELECT 'udp', count(*), sum(len) FROM UDP UNION ALL SELECT 'none', count(*), sum(len) FROM TCP WHERE dst_port = 1 ORDER BY n DESC
=> SELECT 'tcp', count(*) AS n, sum(len) FROM tcp UNION ALL SELECT 'udp', count(*), sum(len) FROM udp UNION ALL SELECT 'none', count(*), sum(len) FROM tcp WHERE dport = 1 ORDER BY n DESC

> SELECT src_ip FROM TCP WHERE syn = 1 UNION ALL SELECT dst_ip FROM UDP
= SELECT src FROM tcp WHERE flags & 2 <> 0 UNION ALL SELECT dst FROM udp

> select ip, count(*) as n from (select src_ip as ip from tcp union all select dst_ip from tcp) as ends group by ip order by n desc limit 3
=> SELECT ip, count(*) AS n FROM (SELECT src AS ip FROM tcp UNION ALL SELECT dst FROM tcp) GROUP BY ip ORDER BY n DESC, ip LIMIT 3

> select 'syn' as what, src_ip, count(*) from tcp where syn = 1 group by src_ip union all select 'all', src_ip, count(*) from tcp group by src_ip
= SELECT 'syn', src, count(*) FROM tcp WHERE flags & 2 <> 0 GROUP BY src UNION ALL SELECT 'all', src, count(*) FROM tcp GROUP BY src

> select distinct ip from (select src_ip as ip from udp union all select dst_ip from udp) as ends
= SELECT src FROM udp UNION SELECT dst FROM udp

> select time, len from tcp union all select 0, sum(len) from tcp
= SELECT t, len FROM tcp UNION ALL SELECT 0, sum(len) FROM tcp

-- Where packets come from

> SELECT count(*) FROM eth0
!
= SELECT count(*) FROM ip

> SELECT count(*) FROM "net.pcap"
!
= SELECT count(*) FROM ip

> select count(*) from net.pcap
!
= SELECT count(*) FROM ip
