#include "common/crc32c.h"

#include <isa-l/crc.h>
#include <stdbool.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

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

/* Combining is on the way of every message, so it is one product of a power that is mostly
 * remembered: the lengths of a busy loop are few, those of what stands in front of a payload and
 * those of the payloads. */
struct power {
    size_t len;
    uint32_t value;
};

enum { KNOWN = 256 }; /* lengths that follow each other share no place */

static uint32_t power_recalled(struct power known[KNOWN], size_t len, uint32_t (*make)(size_t len))
{
    struct power *p = &known[len % KNOWN];

    if (p->len != len || p->value == 0) /* no power is 0 */
        *p = (struct power){.len = len, .value = make(len)};
    return p->value;
}

uint32_t crc32c_combine_portable(uint32_t a, uint32_t b, size_t b_len)
{
    static _Thread_local struct power known[KNOWN];

    return multiply(power_recalled(known, b_len, power_of_bytes), a) ^ b;
}

#ifdef __x86_64__

/* The crc32 instruction gives D * x^32 modulo the polynomial for 64 bits of D, and a carry-less
 * product of two reflected words is D when moved up by one bit.  So with powers that are x^32
 * too low, the two together are multiply(). */
__attribute__((target("pclmul,sse4.2"))) static uint32_t multiply_fast(uint32_t a, uint32_t b)
{
    const __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b), 0);

    return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product) << 1);
}

/* x^-1 is what one step of multiply() undoes: ONE = x * x^-1. */
static uint32_t lowered_power(size_t len)
{
    uint32_t power = power_of_bytes(len);

    for (unsigned i = 0; i < 32; i++) {
        const uint32_t carry = power >> 31;
        power = carry ? ((power ^ POLYNOMIAL) << 1) | 1 : power << 1;
    }
    return power;
}

uint32_t crc32c_combine(uint32_t a, uint32_t b, size_t b_len)
{
    static _Thread_local struct power known[KNOWN];
    static _Thread_local int fast = -1;

    if (fast < 0)
        fast = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2");
    if (!fast)
        return crc32c_combine_portable(a, b, b_len);
    return multiply_fast(power_recalled(known, b_len, lowered_power), a) ^ b;
}

#else

uint32_t crc32c_combine(uint32_t a, uint32_t b, size_t b_len)
{
    return crc32c_combine_portable(a, b, b_len);
}

#endif
