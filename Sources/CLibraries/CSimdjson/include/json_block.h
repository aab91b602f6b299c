// Sixteen bytes of a string at a time, as Swift's SIMD types can't be compared without a loop over their lanes.
#ifndef TOUCHSTONE_JSON_BLOCK_H
#define TOUCHSTONE_JSON_BLOCK_H

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/// Copies 16 bytes and returns the index of the first that JSON text must escape (a control character, a quote, a
/// backslash, DEL), or 16. Both sides must have 16 bytes.
static inline __attribute__((always_inline)) unsigned json_copy_block(uint8_t *target, const uint8_t *source) {
#if defined(__SSE2__)
  __m128i block = _mm_loadu_si128((const __m128i *)source);
  _mm_storeu_si128((__m128i *)target, block);
  __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(0x1F)), block);
  __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
  __m128i backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
  __m128i delete_ = _mm_cmpeq_epi8(block, _mm_set1_epi8(0x7F));
  __m128i special = _mm_or_si128(_mm_or_si128(control, quote), _mm_or_si128(backslash, delete_));
  return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(special) | 0x10000u);
#else
  for (unsigned word = 0; word < 2; word++) {
    const uint64_t ones = 0x0101010101010101u;
    uint64_t bytes;
    memcpy(&bytes, source + word * 8, 8);
    memcpy(target + word * 8, &bytes, 8);
    // The lowest marked byte is exact; borrows can only mark bytes above it.
    uint64_t quote = bytes ^ ones * '"', backslash = bytes ^ ones * '\\', delete_ = bytes ^ ones * 0x7F;
    uint64_t special = ((bytes - ones * 0x20) & ~bytes) | ((quote - ones) & ~quote) |
                       ((backslash - ones) & ~backslash) | ((delete_ - ones) & ~delete_);
    special &= ones * 0x80;
    if (special) return word * 8 + (unsigned)__builtin_ctzll(special) / 8;
  }
  return 16;
#endif
}

/// The same into two targets.
static inline __attribute__((always_inline)) unsigned json_copy_block2(
    uint8_t *target, uint8_t *other, const uint8_t *source) {
  memcpy(other, source, 16);
  return json_copy_block(target, source);
}
#endif
