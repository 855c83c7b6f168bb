/* Walking, slicing and copying iovecs. */
#pragma once

#include <sys/uio.h>

#include "engine/base/check.h"

uint64_t iov_bytes(const struct iovec *iov, uint32_t count);
/* Slice [off, off+len) of `iov` into out[0..max).  Returns the number of entries, or 0 when it
 * would take more than max.  The range must lie inside. */
uint32_t iov_slice(const struct iovec *iov, uint32_t count, uint64_t off, uint64_t len,
                   struct iovec *out, uint32_t max);
void iov_copy_out(void *to, const struct iovec *iov, uint32_t count, uint64_t off, uint64_t len);
void iov_copy_in(const struct iovec *iov, uint32_t count, uint64_t off, const void *from,
                 uint64_t len);
void iov_zero(const struct iovec *iov, uint32_t count, uint64_t off, uint64_t len);
/* Is every base and length a multiple of align (a power of two)? */
bool iov_aligned(const struct iovec *iov, uint32_t count, uint32_t align);
