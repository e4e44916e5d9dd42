"""Names of link types that gscope does not decode, from https://www.tcpdump.org/linktypes.html."""

from __future__ import annotations

READ_LINK_TYPES = frozenset(
    (
        *(0, 1, 9, 10, 12, 14, 50, 51, 101, 104, 105, 107, 108, 113, 127, 129, 178, 192, 195),
        *(226, 228, 229, 230, 239, 242, 258, 276),
    )
)
"""Link types that gscope decodes, in ``link.py``."""

_NAMES = {
    3: "AX25",
    6: "IEEE802_5",
    7: "ARCNET_BSD",
    8: "SLIP",
    100: "ATM_RFC1483",
    114: "LTALK",
    117: "PFLOG",
    119: "IEEE802_11_PRISM",
    122: "IP_OVER_FC",
    123: "SUNATM",
    130: "JUNIPER_MLPPP",
    135: "JUNIPER_ATM2",
    138: "APPLE_IP_OVER_IEEE1394",
    139: "MTP2_WITH_PHDR",
    140: "MTP2",
    141: "MTP3",
    142: "SCCP",
    143: "DOCSIS",
    144: "LINUX_IRDA",
    163: "IEEE802_11_AVS",
    165: "BACNET_MS_TP",
    166: "PPP_PPPD",
    169: "GPRS_LLC",
    177: "LINUX_LAPD",
    179: "JUNIPER_PPP",
    180: "JUNIPER_FRELAY",
    181: "JUNIPER_CHDLC",
    182: "MFR",
    187: "BLUETOOTH_HCI_H4",
    189: "USB_LINUX",
    190: "CAN20B",
    197: "ERF",
    201: "BLUETOOTH_HCI_H4_WITH_PHDR",
    204: "PPP_WITH_DIR",
    215: "IEEE802_15_4_NONASK_PHY",
    220: "USB_LINUX_MMAPPED",
    224: "FC_2",
    227: "CAN_SOCKETCAN",
    231: "DBUS",
    240: "NETANALYZER",
    247: "INFINIBAND",
    248: "SCTP",
    249: "USBPCAP",
    251: "BLUETOOTH_LE_LL",
    252: "WIRESHARK_UPPER_PDU",
    253: "NETLINK",
    254: "BLUETOOTH_LINUX_MONITOR",
    256: "BLUETOOTH_LE_LL_WITH_PHDR",
    264: "ISO_14443",
    279: "EBHSCR",
    283: "IEEE802_15_4_TAP",
    **{147 + n: f"USER{n}" for n in range(16)},
}


def link_type_name(linktype: int) -> str:
    """Return the name and the number of a link type."""
    name = _NAMES.get(linktype)
    return f"LINKTYPE_{name} ({linktype})" if name else f"link type {linktype}"
