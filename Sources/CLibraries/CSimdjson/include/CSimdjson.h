// A thin C face of simdjson: parse JSON text and hand out the tape it made.
//
// The tape is simdjson's own (an array of 64-bit words; the top byte is a tag, the rest a payload):
//   'r'       payload = index of the last word (root; the value is word 1)
//   '{' '['   low 32 bits = index after the matching end, next 24 bits = count (saturated)
//   '}' ']'   payload = index of the opening word
//   '"'       payload = offset into the string buffer: u32 length, the bytes, a NUL
//   'l' 'u' 'd'  the next word is the int64, uint64 or double
//   't' 'f' 'n'  true, false, null
#ifndef TOUCHSTONE_CSIMDJSON_H
#define TOUCHSTONE_CSIMDJSON_H

#include <stddef.h>
#include <stdint.h>

#include "json_block.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct json_parser json_parser;

/// What a parse gave: an error (0 if none), and the tape and strings, which stay valid until the
/// parser parses again or is destroyed. At least 32 readable bytes follow the last string.
typedef struct {
  int error;
  const uint64_t *tape;
  const uint8_t *strings;
} json_parse_result;

enum { JSON_ERROR_MEMORY = -1, JSON_ERROR_DEPTH = -2, JSON_ERROR_NUMBER = -3 };

/// A parser for one thread at a time; NULL when there is no memory.
json_parser *json_parser_create(void);
void json_parser_destroy(json_parser *parser);

/// Parses `length` bytes (copied: the text needs no padding). Memory grown for a text of megabytes is
/// given back when a small one follows.
json_parse_result json_parser_parse(json_parser *parser, const uint8_t *text, size_t length);

/// simdjson's message for an error code.
const char *json_error_message(int error);

/// Writes the shortest decimal form that reads back as `value` (finite), at most 32 bytes, and returns its
/// length: fixed notation from 1e-4 up to 2^53 with at least one digit after the point, otherwise
/// `1.5e+20`. No NUL is written.
size_t json_format_double(double value, char *buffer);

#ifdef __cplusplus
}
#endif
#endif
