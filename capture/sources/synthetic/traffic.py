"""The sequence of synthetic packets: conversations, sequence numbers, a Poisson clock.

Traffic is drawn as *exchanges*: a rank is chosen by its popularity, and the phase of its
conversation decides the *train* of packets that it adds, such as SYN, SYN/ACK, ACK, request,
response. The packets of a train are half a round trip apart. They are ordered by a *key*, a
position in the trace counted in packets, and only then get their times, so that arrivals are a
Poisson process whatever the trains are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.sources.synthetic.trains import (
    ACK,
    DRAWN,
    FIN,
    FULL,
    OPENING_DELAY,
    PSH,
    STEP_CONTENT,
    STEP_DELAY,
    STEP_DOWN,
    STEP_FLAGS,
    STEP_PAYLOAD,
    SYN,
    TRAIN_DELAY,
    TRAIN_LENGTH,
    Service,
    steps_of,
    train_phase,
)
from gscope.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gscope.capture.sources.synthetic.source import TrafficProfile

EXCHANGES_PER_CHUNK = 1 << 15
"""Exchanges drawn at once; they have two or three times as many packets, a few megabytes."""

PACKET = np.dtype(
    [
        ("key", "f8"),
        ("time_ns", "i8"),
        ("slot", "i4"),
        ("conversation", "i4"),
        ("seq", "u4"),
        ("ack", "u4"),
        ("payload", "i4"),
        ("exchange", "u2"),
        ("content", "u1"),
        ("flags", "u1"),
        ("down", "?"),
    ]
)
"""A packet to be built: its sender (``slot``, ``conversation``, ``down`` if the server), and its
content."""

_ENDLESS = 1 << 31
_PING_SLOTS = 256
_ARP_SLOTS = 64


def scramble(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a bijective hash of 64-bit values (splitmix64's finaliser)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of conversations, as arrays with an entry for each: ranks, then pings, then ARP.

    Attributes:
        service: the ``Service``.
        exchanges: number of exchanges of one conversation.
        half_trip: half the round-trip time, in packets of the whole trace.
        ipv6: whether the conversation uses IPv6.
        vlan: VLAN id of the 802.1Q tag; 0 for none.
        hash: 64 random bits for addresses and similar values.
        popularity: cumulative probability of being chosen for an exchange.
    """

    service: NDArray[np.uint8]
    exchanges: NDArray[np.int64]
    half_trip: NDArray[np.float64]
    ipv6: NDArray[np.bool_]
    vlan: NDArray[np.uint16]
    hash: NDArray[np.uint64]
    popularity: NDArray[np.float64]

    @classmethod
    def from_profile(cls, profile: TrafficProfile) -> Slots:
        """Return the slots of a profile."""
        flows = profile.flows
        count = flows + _PING_SLOTS + _ARP_SLOTS
        number = np.arange(count, dtype=np.uint64)
        weight = np.arange(1, flows + 1, dtype=np.float64) ** -profile.zipf_exponent
        other = profile.ping_share + profile.arp_share
        chance = np.concatenate(
            [
                weight * ((1.0 - other) / weight.sum()),
                np.full(_PING_SLOTS, profile.ping_share / _PING_SLOTS),
                np.full(_ARP_SLOTS, profile.arp_share / _ARP_SLOTS),
            ]
        )
        service = _services(profile, flows)
        hashed = scramble(number * np.uint64(2) + np.uint64(1) + np.uint64(profile.seed << 32))
        # Round trips of 0.5 to 40 ms, uniform on a logarithmic scale.
        trip_s = 0.5e-3 * 80.0 ** ((hashed >> np.uint64(40)).astype(np.float64) / (1 << 24))
        # An exchange adds about 1.5 packets, which is accurate enough for a mean lifetime.
        expected = chance * profile.packets_per_second * profile.churn_s / 1.5
        spread = 0.5 + (hashed & np.uint64(0xFFFF)).astype(np.float64) / 0x10000
        exchanges = np.clip(expected * spread, 1, _ENDLESS).astype(np.int64)
        exchanges[: min(profile.stable_flows, flows)] = _ENDLESS
        exchanges[service == Service.PING] = _ENDLESS
        exchanges[service == Service.DNS] = 1
        popularity = np.cumsum(chance)
        return cls(
            service=service,
            exchanges=exchanges,
            half_trip=trip_s * 0.5 * profile.packets_per_second,
            ipv6=_spread(count, 0.4142135623730951) < profile.ipv6_share,
            vlan=np.where(
                _spread(count, 0.7320508075688772) < profile.vlan_share,
                100 + hashed % np.uint64(16),
                np.uint64(0),
            ).astype(np.uint16),
            hash=hashed,
            popularity=popularity / popularity[-1],
        )


def _services(profile: TrafficProfile, flows: int) -> NDArray[np.uint8]:
    shares = [profile.http_share, profile.tcp_share, profile.quic_share, profile.dns_share]
    kinds = np.array([Service.HTTP, Service.TCP, Service.QUIC, Service.DNS, Service.HTTPS], "u1")
    place = _spread(flows, 0.6180339887498949)
    chosen: NDArray[np.uint8] = kinds[np.searchsorted(np.cumsum(shares), place, side="right")]
    stable = chosen[: profile.stable_flows]
    stable[stable == Service.DNS] = Service.HTTPS
    others = np.repeat(np.array([Service.PING, Service.ARP], "u1"), [_PING_SLOTS, _ARP_SLOTS])
    return np.concatenate([chosen, others])


def _spread(count: int, step: float) -> NDArray[np.float64]:
    """Return multiples of ``step`` modulo 1: any run of ranks has a fair share below a bound."""
    place: NDArray[np.float64] = np.modf((np.arange(count) + 0.5) * step)[0]
    return place


class Traffic:
    """The endless sequence of packets of a profile, in chunks."""

    def __init__(self, profile: TrafficProfile) -> None:
        self.slots = Slots.from_profile(profile)
        self._profile = profile
        self._random = np.random.Generator(np.random.SFC64(profile.seed))
        count = self.slots.service.size
        # For each slot: exchanges so far, bytes sent up and down in the open conversation, and the
        # key after which data may follow the handshake.
        self._drawn = np.zeros(count, np.int64)
        self._drawn[: min(profile.stable_flows, profile.flows)] = 1
        self._sent = np.zeros((2, count), np.int64)
        self._ready = np.zeros(count)
        self._next_key = 0.0
        self._time_ns = profile.start_ns
        self._waiting = np.zeros(0, PACKET)

    def next_chunk(self) -> NDArray[np.void]:
        """Return the next packets in order of time, as ``PACKET``; possibly none."""
        drawn = self._draw()
        everything = np.concatenate([self._waiting, drawn, self._retransmissions(drawn)])
        due = everything["key"] < self._next_key
        self._waiting = everything[~due]
        chunk = everything[due]
        chunk = chunk[np.argsort(chunk["key"], kind="stable")]
        gaps = self._random.exponential(1e9 / self._profile.packets_per_second, chunk.size)
        gaps_ns = np.rint(gaps).astype(np.int64)
        chunk["time_ns"] = self._time_ns + np.cumsum(gaps_ns)
        self._time_ns += int(gaps_ns.sum())
        return chunk

    def _draw(self) -> NDArray[np.void]:
        """Return the packets of the next exchanges, grouped by slot, in order within a slot."""
        slots = self.slots
        chosen = np.searchsorted(slots.popularity, self._random.random(EXCHANGES_PER_CHUNK))
        order = np.argsort(chosen, kind="stable")
        slot = chosen[order]
        first, group = _groups(slot[1:] != slot[:-1])
        turn = self._drawn[slot] + np.arange(slot.size) - first[group]
        self._drawn += np.bincount(slot, minlength=self._drawn.size)
        conversation, place = np.divmod(turn, slots.exchanges[slot])
        train = slots.service[slot] * 4 + train_phase(place, slots.exchanges[slot])

        length = np.empty_like(train)
        length[order] = TRAIN_LENGTH[train]
        end = np.cumsum(length)
        key = self._next_key + (end - length)[order]
        self._next_key += float(end[-1])
        key = self._after_handshake(key, slot, conversation, place)

        step, exchange = steps_of(train)
        packets = np.zeros(step.size, PACKET)
        packets["slot"] = slot[exchange]
        packets["conversation"] = conversation[exchange]
        packets["exchange"] = turn[exchange] & 0xFFFF
        delay = STEP_DELAY[step] - TRAIN_DELAY[train][exchange]
        packets["key"] = key[exchange] + delay * slots.half_trip[packets["slot"]]
        packets["content"] = STEP_CONTENT[step]
        packets["flags"] = STEP_FLAGS[step]
        packets["down"] = STEP_DOWN[step]
        self._draw_payloads(packets, STEP_PAYLOAD[step])
        self._number(packets, place[exchange])
        return packets

    def _after_handshake(
        self,
        key: NDArray[np.float64],
        slot: NDArray[np.int64],
        conversation: NDArray[np.int64],
        place: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Return the keys, delayed where data would otherwise precede the handshake."""
        first, group = _groups((slot[1:] != slot[:-1]) | (conversation[1:] != conversation[:-1]))
        opened = key[first] + OPENING_DELAY * self.slots.half_trip[slot[first]]
        ready = np.where(place[first] == 0, opened, self._ready[slot[first]])
        self._ready[slot[first]] = ready
        return np.where(place == 0, key, np.maximum(key, ready[group]))

    def _draw_payloads(self, packets: NDArray[np.void], payload: NDArray[np.int64]) -> None:
        """Replace drawn and full payloads by byte counts; acknowledgments go up, full ones down."""
        profile = self._profile
        udp = self.slots.service[packets["slot"]] == Service.QUIC
        headers = np.where(udp, 28, 40) + np.where(self.slots.ipv6[packets["slot"]], 20, 0)
        full = profile.mtu_bytes - headers
        payload = np.where(payload == FULL, full, payload)
        drawn = np.flatnonzero(payload == DRAWN)
        dice = self._random.random(drawn.size)
        small = dice < profile.small_share
        large = dice >= 1.0 - profile.large_share
        between = self._random.integers(64, full[drawn])
        tiny = np.where(udp[drawn], 24 + (between & 31), 0)
        payload[drawn] = np.where(small, tiny, np.where(large, full[drawn], between))
        packets["down"][drawn] = large | (~small & (between & 1 == 0))
        packets["flags"][drawn] |= np.where(small | udp[drawn], 0, PSH).astype(np.uint8)
        packets["payload"] = payload

    def _number(self, packets: NDArray[np.void], place: NDArray[np.int64]) -> None:
        """Set the sequence and acknowledgment numbers of TCP segments."""
        slot, conversation = packets["slot"], packets["conversation"]
        flags = packets["flags"]
        advance = packets["payload"] + ((flags & (SYN | FIN)) != 0)
        first, group = _groups((slot[1:] != slot[:-1]) | (conversation[1:] != conversation[:-1]))
        is_last = np.append(slot[1:] != slot[:-1], True)
        down = packets["down"]
        position = np.empty((2, packets.size), np.int64)
        for side in (0, 1):
            own = np.where(down == side, advance, 0)
            after = np.cumsum(own)
            before = after - own
            base = np.where(place[first] == 0, 0, self._sent[side, slot[first]]) - before[first]
            position[side] = before + base[group]
            self._sent[side, slot[is_last]] = (after + base[group])[is_last]
        identity = self.slots.hash[slot] + conversation.astype(np.uint64)
        initial = scramble(identity)
        up_number = position[0] + (initial & np.uint64(0xFFFFFFFF)).astype(np.int64)
        down_number = position[1] + (initial >> np.uint64(32)).astype(np.int64)
        packets["seq"] = np.where(down, down_number, up_number) & 0xFFFFFFFF
        acknowledged = np.where(down, up_number, down_number) & 0xFFFFFFFF
        packets["ack"] = np.where(flags & ACK, acknowledged, 0)

    def _retransmissions(self, packets: NDArray[np.void]) -> NDArray[np.void]:
        """Return copies of some TCP segments, three half round trips after the originals."""
        is_data = (packets["flags"] & ACK != 0) & (packets["payload"] > 0)
        again = self._random.random(packets.size) < self._profile.retransmission_rate
        copies: NDArray[np.void] = packets[is_data & again]
        copies["key"] += 3 * self.slots.half_trip[copies["slot"]]
        return copies


def _groups(changes: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first index of each run of equal neighbours, and the run of each element."""
    is_first = np.concatenate([np.ones(1, np.bool_), changes])
    return np.flatnonzero(is_first), np.cumsum(is_first) - 1
