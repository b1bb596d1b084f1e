/*
 * Runs the functions of plain C files beside the pieces of the reference walker: `driver FILE`, where FILE holds numbers of 64 bits,
 * as tests/plain_sources.rs writes them. The text before this one defines the functions and the table `types`. With -DGUARD=0 the
 * buffers end where the type does, for the address sanitizer; with more, poison lies around them.
 */
#include <stdio.h>
#include <stdlib.h>

#ifndef GUARD
#define GUARD 64
#endif

static uint64_t state = 1;

static uint64_t draw(void)
{
    state += 0x9e3779b97f4a7c15;
    uint64_t mixed = (state ^ state >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

static int64_t number(FILE *file)
{
    int64_t number;
    if (fread(&number, sizeof number, 1, file) != 1) {
        fprintf(stderr, "driver: the file ends early\n");
        exit(2);
    }
    return number;
}

/* Bytes with poison around. `bytes` begins at any alignment. */
struct buffer {
    unsigned char *all, *bytes;
    size_t length, total;
};

static struct buffer random_buffer(size_t length)
{
    const size_t shift = GUARD + draw() % 16;
    struct buffer buffer = {NULL, NULL, length, shift + length + GUARD};
    buffer.all = malloc(buffer.total == 0 ? 1 : buffer.total);
    if (buffer.all == NULL) {
        fprintf(stderr, "driver: no memory for %zu bytes\n", buffer.total);
        exit(2);
    }
    for (size_t at = 0; at < buffer.total; at += 8) {
        const uint64_t word = draw();
        memcpy(buffer.all + at, &word, buffer.total - at < 8 ? buffer.total - at : 8);
    }
    buffer.bytes = buffer.all + shift;
    return buffer;
}

static struct buffer copy_of(struct buffer buffer)
{
    struct buffer copy = buffer;
    copy.all = malloc(buffer.total == 0 ? 1 : buffer.total);
    if (copy.all == NULL) {
        exit(2);
    }
    memcpy(copy.all, buffer.all, buffer.total);
    copy.bytes = copy.all + (buffer.bytes - buffer.all);
    return copy;
}

static void expect_equal(const char *name, const char *what, size_t offset, size_t length, struct buffer found, struct buffer expected)
{
    for (size_t at = 0; at < found.total; at++) {
        if (found.all[at] != expected.all[at]) {
            printf("%s: %s of packed bytes %zu to %zu: byte %td is wrong\n", name, what, offset, offset + length,
                   found.all + at - found.bytes);
            exit(1);
        }
    }
}

struct piece {
    int64_t displacement, length;
};

int main(int count, char **arguments)
{
    FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "driver: expected a file\n");
        return 2;
    }
    size_t calls = 0;
    for (int64_t cases = number(file); cases > 0; cases--) {
        const struct functions type = types[number(file)];
        const size_t elements = (size_t)number(file);
        const int64_t low = number(file), span = number(file), pieces = number(file);
        struct piece *piece = malloc((size_t)(pieces + 1) * sizeof *piece);
        for (int64_t at = 0; at < pieces; at++) {
            piece[at].displacement = number(file);
            piece[at].length = number(file);
        }
        for (int64_t fragments = number(file); fragments > 0; fragments--) {
            const size_t offset = (size_t)number(file), length = (size_t)number(file);
            const int whole = number(file) != 0;
            for (int pack = 0; pack < 2; pack++) {
                struct buffer memory = random_buffer((size_t)span), packed = random_buffer(length);
                struct buffer wanted = copy_of(pack ? packed : memory), read = copy_of(pack ? memory : packed);
                size_t at = 0;
                for (int64_t number = 0; number < pieces; number++) {
                    for (int64_t byte = 0; byte < piece[number].length; byte++, at++) {
                        if (at < offset || at >= offset + length) {
                            continue;
                        }
                        const int64_t there = piece[number].displacement + byte - low;
                        if (pack) {
                            wanted.bytes[at - offset] = memory.bytes[there];
                        } else {
                            wanted.bytes[there] = packed.bytes[at - offset];
                        }
                    }
                }
                unsigned char *address = (unsigned char *)((uintptr_t)memory.bytes - (uintptr_t)low);
                if (whole && pack) {
                    type.pack(address, packed.bytes, elements);
                } else if (whole) {
                    type.unpack(packed.bytes, address, elements);
                } else if (pack) {
                    type.pack_fragment(address, packed.bytes, offset, length);
                } else {
                    type.unpack_fragment(packed.bytes, address, offset, length);
                }
                const char *what = whole ? pack ? "pack" : "unpack" : pack ? "pack fragment" : "unpack fragment";
                expect_equal(type.name, what, offset, length, pack ? packed : memory, wanted);
                expect_equal(type.name, what, offset, length, pack ? memory : packed, read);
                free(memory.all);
                free(packed.all);
                free(wanted.all);
                free(read.all);
                calls++;
            }
        }
        free(piece);
    }
    fclose(file);
    printf("%zu calls\n", calls);
    return 0;
}
