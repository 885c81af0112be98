#include "common/crc32c.h"

#include <isa-l/crc.h>
#include <stdbool.h>

#define POLYNOMIAL 0x82F63B78u
#define ONE        0x80000000u       /* x^0: reflected, so the highest bit is the lowest power */
#define PIECE      ((size_t)1 << 30) /* ISA-L counts in int */

uint32_t crc32c(const void *bytes, size_t len)
{
    return crc32c_more(0, bytes, len);
}

/* ISA-L leaves the xor at both ends to its caller. */
uint32_t crc32c_more(uint32_t crc, const void *bytes, size_t len)
{
    unsigned char *at = (unsigned char *)(uintptr_t)bytes;
    crc = ~crc;
    while (len > 0) {
        size_t n = len < PIECE ? len : PIECE;
        crc = crc32_iscsi(at, (int)n, crc);
        at += n;
        len -= n;
    }
    return ~crc;
}

/* The product of two polynomials modulo the Castagnoli one. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (unsigned i = 0; i < 32; i++) {
        product ^= b & -(a >> 31);
        a <<= 1;
        b = (b >> 1) ^ (POLYNOMIAL & -(b & 1));
    }
    return product;
}

/* x to the power of 8 * len, by squaring: x^8, x^16, x^32 ... */
static uint32_t power_of_bytes(size_t len)
{
    uint32_t square = ONE >> 8;
    uint32_t power = ONE;
    for (; len > 0; len >>= 1) {
        if (len & 1)
            power = multiply(square, power);
        square = multiply(square, square);
    }
    return power;
}

/* Payloads of one producer tend to be of one length, so the last power is remembered. */
uint32_t crc32c_combine(uint32_t a, uint32_t b, size_t b_len)
{
    static _Thread_local size_t known_len;
    static _Thread_local uint32_t known_power = ONE;

    if (b_len != known_len) {
        known_len = b_len;
        known_power = power_of_bytes(b_len);
    }
    return multiply(known_power, a) ^ b;
}
