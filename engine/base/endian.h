/* Integers as they lie on disk (little-endian) and on the wire (big-endian).
 *
 * The wrapper types keep a raw value from being used by mistake: only the converters here read or
 * write them.  They have no alignment of their own, so they pack.
 */
#pragma once

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define ENDIAN_TYPE_(name, bits, to_host, from_host)                                               \
    struct name {                                                                                  \
        uint8_t bytes[(bits) / 8];                                                                 \
    };                                                                                             \
    static inline uint##bits##_t name##_get(struct name v)                                         \
    {                                                                                              \
        uint##bits##_t raw;                                                                        \
        memcpy(&raw, v.bytes, sizeof(raw));                                                        \
        return to_host(raw);                                                                       \
    }                                                                                              \
    static inline struct name name##_make(uint##bits##_t value)                                    \
    {                                                                                              \
        struct name v;                                                                             \
        uint##bits##_t raw = from_host(value);                                                     \
        memcpy(v.bytes, &raw, sizeof(raw));                                                        \
        return v;                                                                                  \
    }

ENDIAN_TYPE_(le16, 16, le16toh, htole16)
ENDIAN_TYPE_(le32, 32, le32toh, htole32)
ENDIAN_TYPE_(le64, 64, le64toh, htole64)
ENDIAN_TYPE_(be16, 16, be16toh, htobe16)
ENDIAN_TYPE_(be32, 32, be32toh, htobe32)
ENDIAN_TYPE_(be64, 64, be64toh, htobe64)
