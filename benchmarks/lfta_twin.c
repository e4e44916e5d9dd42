/* The flow LFTA in C: what a compiler makes of the same work, as a yardstick for the generated kernel.
 *
 *   SELECT tb, ipversion, protocol, srcIP, destIP, srcPort, destPort, count(*), sum(len)
 *   FROM IP GROUP BY time/10 as tb, ...            (partial aggregates; a group may come several times)
 *
 * usage: lfta_twin CAPTURE OUTPUT [log2 of the slots, 16]
 *
 * Reads a little-endian pcap of Ethernet frames through one reused buffer. Packets are taken in batches of
 * 64: parsed, hashed, their slot prefetched; then all 64 update their slots. A slot whose group differs is
 * evicted; all slots are flushed when the epoch changes. The output is a sequence of batches, each
 * an int64 row count followed by the columns. The last line on stdout gives the counters.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    BUFFER_BYTES = 512 * 1024,
    PADDING_BYTES = 64,
    FILE_HEADER_BYTES = 24,
    RECORD_BYTES = 16,
    ETHERNET_BYTES = 14,
    BATCH_PACKETS = 64,
    BATCH_ROWS = 1 << 16,
    COLUMNS = 9,
    EPOCH_SECONDS = 10,
    MAX_EXTENSION_HEADERS = 16,
};

typedef struct {
    uint64_t source[2], destination[2]; /* as on the wire; IPv4 in the first word's low half */
    uint64_t rest;                      /* ports as on the wire, protocol << 32, version << 40 */
} Key;

typedef struct {
    Key key;
    int64_t count, bytes;
    int64_t unused; /* makes a slot one cache line */
} Slot;

typedef struct {
    Key key;
    Slot *slot;
    int64_t wirelen;
} Selected;

typedef struct {
    int fd;
    int64_t rows;
    int64_t tb[BATCH_ROWS];
    int32_t version[BATCH_ROWS], protocol[BATCH_ROWS];
    uint8_t source[BATCH_ROWS][16], destination[BATCH_ROWS][16];
    int32_t source_port[BATCH_ROWS], destination_port[BATCH_ROWS];
    int64_t count[BATCH_ROWS], bytes[BATCH_ROWS];
} Output;

typedef struct {
    Slot *slots;
    int shift;
    int64_t size, epoch, epoch_begin, epoch_end;
    int64_t packets, selected, evicted, rows;
    Output *output;
} Lfta;

/* Complain, with the system's reason if there is one, and exit. */
static void fail(const char *what) {
    fprintf(stderr, "lfta_twin: %s%s%s\n", what, errno ? ": " : "", errno ? strerror(errno) : "");
    exit(1);
}

static inline uint16_t load16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static inline uint32_t load32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static inline uint64_t load64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }
static inline uint16_t net16(const uint8_t *p) { return __builtin_bswap16(load16(p)); }

static void write_batch(Output *out) {
    size_t n = (size_t)out->rows;
    struct iovec parts[COLUMNS + 1] = {
        {&out->rows, sizeof out->rows},
        {out->tb, n * 8}, {out->version, n * 4}, {out->protocol, n * 4},
        {out->source, n * 16}, {out->destination, n * 16},
        {out->source_port, n * 4}, {out->destination_port, n * 4},
        {out->count, n * 8}, {out->bytes, n * 8},
    };
    struct iovec *part = parts;
    int left = n ? COLUMNS + 1 : 0;
    while (left > 0) {
        ssize_t done = writev(out->fd, part, left);
        if (done < 0) fail("write");
        for (; left > 0 && (size_t)done >= part->iov_len; part++, left--) done -= part->iov_len;
        if (left > 0) {
            part->iov_base = (char *)part->iov_base + done;
            part->iov_len -= (size_t)done;
        }
    }
    out->rows = 0;
}

static void emit(Lfta *lfta, const Slot *slot) {
    Output *out = lfta->output;
    int64_t i = out->rows;
    uint64_t rest = slot->key.rest;
    uint64_t source[2] = {slot->key.source[0], slot->key.source[1]};
    uint64_t destination[2] = {slot->key.destination[0], slot->key.destination[1]};
    int version = (int)(rest >> 40);
    if (version == 4) { /* v4-mapped: ::ffff:a.b.c.d */
        source[1] = 0xffff0000u | source[0] << 32, source[0] = 0;
        destination[1] = 0xffff0000u | destination[0] << 32, destination[0] = 0;
    }
    out->tb[i] = lfta->epoch;
    out->version[i] = version;
    out->protocol[i] = rest >> 32 & 0xff;
    memcpy(out->source[i], source, 16);
    memcpy(out->destination[i], destination, 16);
    out->source_port[i] = __builtin_bswap16((uint16_t)rest);
    out->destination_port[i] = __builtin_bswap16((uint16_t)(rest >> 16));
    out->count[i] = slot->count;
    out->bytes[i] = slot->bytes;
    lfta->rows++;
    if (++out->rows == BATCH_ROWS) write_batch(out);
}

static void flush(Lfta *lfta) {
    for (int64_t i = 0; i < lfta->size; i++) {
        if (lfta->slots[i].count) emit(lfta, &lfta->slots[i]);
        lfta->slots[i].count = 0;
    }
}

static inline uint64_t ports_at(const uint8_t *p, const uint8_t *end, uint64_t protocol) {
    int has_ports = protocol == 6 || protocol == 17 || protocol == 132;
    return has_ports && end - p >= 4 ? load32(p) : 0;
}

static inline int parse_ipv4(const uint8_t *ip, const uint8_t *end, Key *key) {
    if (end - ip < 20 || ip[0] >> 4 != 4 || (ip[0] & 15) < 5) return 0;
    uint64_t protocol = ip[9];
    key->source[0] = load32(ip + 12);
    key->destination[0] = load32(ip + 16);
    key->source[1] = key->destination[1] = 0;
    key->rest = 4ull << 40 | protocol << 32;
    if ((net16(ip + 6) & 0x1fff) == 0) key->rest |= ports_at(ip + (ip[0] & 15) * 4, end, protocol);
    return 1;
}

static int parse_ipv6(const uint8_t *ip, const uint8_t *end, Key *key) {
    if (end - ip < 40 || ip[0] >> 4 != 6) return 0;
    uint64_t next = ip[6];
    const uint8_t *p = ip + 40;
    int is_first = 1;
    for (int i = 0; i < MAX_EXTENSION_HEADERS; i++) {
        if (next != 0 && next != 43 && next != 44 && next != 60) break;
        if (end - p < 8) break;
        if (next == 44 && net16(p + 2) >> 3) is_first = 0;
        int length = next == 44 ? 8 : (p[1] + 1) * 8;
        next = p[0];
        if (end - p < length) { p = end; break; }
        p += length;
        if (!is_first) break; /* what follows belongs to the first fragment */
    }
    key->source[0] = load64(ip + 8), key->source[1] = load64(ip + 16);
    key->destination[0] = load64(ip + 24), key->destination[1] = load64(ip + 32);
    key->rest = 6ull << 40 | next << 32;
    if (is_first) key->rest |= ports_at(p, end, next);
    return 1;
}

static inline int parse_frame(const uint8_t *frame, uint32_t caplen, Key *key) {
    const uint8_t *end = frame + caplen;
    const uint8_t *p = frame + ETHERNET_BYTES;
    if (caplen < ETHERNET_BYTES) return 0;
    uint16_t ethertype = net16(frame + 12);
    while ((ethertype == 0x8100 || ethertype == 0x88a8) && end - p >= 4) {
        ethertype = net16(p + 2);
        p += 4;
    }
    if (ethertype == 0x0800) return parse_ipv4(p, end, key);
    if (ethertype == 0x86dd) return parse_ipv6(p, end, key);
    return 0;
}

static inline uint64_t hash(const Key *key) {
    uint64_t h = (key->source[0] ^ key->destination[0] << 32 ^ key->destination[0] >> 32)
                 * 0x9e3779b97f4a7c15ull;
    h += (key->source[1] ^ (key->destination[1] << 1)) * 0xd6e8feb86659fd93ull;
    h += key->rest * 0xc2b2ae3d27d4eb4full;
    h = (h ^ h >> 29) * 0xff51afd7ed558ccdull;
    return h ^ h >> 32;
}

static inline int same(const Key *a, const Key *b) {
    return ((a->source[0] ^ b->source[0]) | (a->source[1] ^ b->source[1])
            | (a->destination[0] ^ b->destination[0]) | (a->destination[1] ^ b->destination[1])
            | (a->rest ^ b->rest)) == 0;
}

static inline void update(Lfta *lfta, const Selected *packet) {
    Slot *slot = packet->slot;
    if (slot->count && same(&slot->key, &packet->key)) {
        slot->count++;
        slot->bytes += packet->wirelen;
        return;
    }
    if (slot->count) {
        emit(lfta, slot);
        lfta->evicted++;
    }
    slot->key = packet->key;
    slot->count = 1;
    slot->bytes = packet->wirelen;
}

/* Take every whole record of a buffer; returns the bytes used. */
static int64_t process(Lfta *lfta, const uint8_t *data, int64_t size) {
    Selected batch[BATCH_PACKETS];
    int64_t offset = 0;
    for (;;) {
        int taken = 0, is_out = 0;
        int64_t second = lfta->epoch_begin;
        while (taken < BATCH_PACKETS) {
            const uint8_t *record = data + offset;
            if (size - offset < RECORD_BYTES) { is_out = 1; break; }
            uint32_t caplen = load32(record + 8);
            if (size - offset - RECORD_BYTES < (int64_t)caplen) { is_out = 1; break; }
            second = load32(record);
            if (second < lfta->epoch_begin || second >= lfta->epoch_end) break;
            offset += RECORD_BYTES + caplen;
            lfta->packets++;
            Selected *packet = &batch[taken];
            if (!parse_frame(record + RECORD_BYTES, caplen, &packet->key)) continue;
            packet->slot = lfta->slots + (hash(&packet->key) >> lfta->shift);
            __builtin_prefetch(packet->slot, 1, 3);
            packet->wirelen = load32(record + 12);
            taken++;
        }
        for (int i = 0; i < taken; i++) update(lfta, &batch[i]);
        lfta->selected += taken;
        if (is_out) return offset;
        if (second < lfta->epoch_begin || second >= lfta->epoch_end) {
            flush(lfta);
            lfta->epoch = second / EPOCH_SECONDS;
            lfta->epoch_begin = lfta->epoch * EPOCH_SECONDS;
            lfta->epoch_end = lfta->epoch_begin + EPOCH_SECONDS;
        }
    }
}

static void check_header(const uint8_t *header, ssize_t size) {
    errno = 0;
    if (size < FILE_HEADER_BYTES) fail("the capture is shorter than a pcap header");
    uint32_t magic = load32(header);
    if (magic != 0xa1b2c3d4 && magic != 0xa1b23c4d) fail("not a little-endian pcap");
    if ((load32(header + 20) & 0xffff) != 1) fail("the link type is not Ethernet");
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: %s CAPTURE OUTPUT [log2 of the slots]\n", argv[0]);
        return 2;
    }
    int bits = argc > 3 ? atoi(argv[3]) : 16;
    errno = 0;
    if (bits < 1 || bits > 26) fail("log2 of the slots must be 1 to 26");
    Lfta lfta = {.size = 1ll << bits, .shift = 64 - bits};
    lfta.slots = aligned_alloc(64, sizeof(Slot) << bits);
    lfta.output = calloc(1, sizeof(Output));
    uint8_t *buffer = calloc(1, BUFFER_BYTES + PADDING_BYTES);
    if (!lfta.slots || !lfta.output || !buffer) fail("memory");
    memset(lfta.slots, 0, sizeof(Slot) << bits);
    int fd = open(argv[1], O_RDONLY);
    if (fd < 0) fail(argv[1]);
    lfta.output->fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (lfta.output->fd < 0) fail(argv[2]);

    int64_t held = read(fd, buffer, BUFFER_BYTES);
    if (held < 0) fail(argv[1]);
    check_header(buffer, held);
    int64_t used = FILE_HEADER_BYTES;
    for (;;) {
        used += process(&lfta, buffer + used, held - used);
        memmove(buffer, buffer + used, (size_t)(held - used));
        held -= used;
        used = 0;
        errno = 0;
        if (held == BUFFER_BYTES) fail("a record is longer than the buffer");
        ssize_t more = read(fd, buffer + held, (size_t)(BUFFER_BYTES - held));
        if (more < 0) fail(argv[1]);
        if (more == 0) break;
        held += more;
    }
    flush(&lfta);
    write_batch(lfta.output);
    if (close(lfta.output->fd)) fail(argv[2]);
    printf("packets=%lld selected=%lld rows=%lld evicted=%lld cut_bytes=%lld\n", (long long)lfta.packets,
           (long long)lfta.selected, (long long)lfta.rows, (long long)lfta.evicted, (long long)held);
    return 0;
}
