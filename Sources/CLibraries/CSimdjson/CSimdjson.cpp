// simdjson behind extern "C": owns one reusable dom::parser and the padded copy of the text.

#include "CSimdjson.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include <simdjson.h>

struct json_parser {
  simdjson::dom::parser parser;
  uint8_t *text = nullptr;
  size_t capacity = 0;

  ~json_parser() { std::free(text); }
};

namespace {
constexpr size_t smallest_capacity = 4096;
/// A parser that has grown past this is replaced once texts are a quarter of it or less.
constexpr size_t kept_capacity = 4u << 20;

/// What makes parsers for this processor. `exit` destroys the library's object while other threads may still parse, and the next parser
/// would end the process with "pure virtual method called" (before simdjson 3.9.2). So it is used as a copy that nothing destroys.
/// Making a parser needs only its virtual table.
const simdjson::implementation &implementation() {
  alignas(simdjson::implementation) static unsigned char copy[sizeof(simdjson::implementation)];
  static const simdjson::implementation *const kept = [] {
    // The first call of a method puts the implementation for this processor in the place of one that looks for it.
    simdjson::get_active_implementation()->name();
    const simdjson::implementation *active = simdjson::get_active_implementation();
    std::memcpy(copy, static_cast<const void *>(active), sizeof copy);
    return reinterpret_cast<const simdjson::implementation *>(copy);
  }();
  return *kept;
}

simdjson::error_code allocate(simdjson::dom::parser &parser, size_t capacity) {
  if (parser.implementation) return parser.allocate(capacity);
  return implementation().create_dom_parser_implementation(capacity, simdjson::DEFAULT_MAX_DEPTH,
                                                           parser.implementation);
}

bool set_capacity(json_parser &self, size_t capacity) {
  std::free(self.text);
  self.capacity = 0;
  self.text = static_cast<uint8_t *>(std::malloc(capacity + simdjson::SIMDJSON_PADDING));
  if (!self.text) return false;
  if (allocate(self.parser, capacity) != simdjson::SUCCESS) return false;
  if (self.parser.doc.allocate(capacity) != simdjson::SUCCESS) return false;
  self.capacity = capacity;
  return true;
}

int code(simdjson::error_code error) {
  switch (error) {
    case simdjson::MEMALLOC:
    case simdjson::CAPACITY: return JSON_ERROR_MEMORY;
    case simdjson::DEPTH_ERROR: return JSON_ERROR_DEPTH;
    case simdjson::NUMBER_ERROR: return JSON_ERROR_NUMBER;
    default: return static_cast<int>(error);
  }
}
}  // namespace

json_parser *json_parser_create(void) { return new (std::nothrow) json_parser; }

void json_parser_destroy(json_parser *parser) { delete parser; }

json_parse_result json_parser_parse(json_parser *parser, const uint8_t *text, size_t length) {
  json_parse_result result = {JSON_ERROR_MEMORY, nullptr, nullptr};
  bool too_small = parser->capacity == 0 || length > parser->capacity;
  bool too_large = parser->capacity > kept_capacity && length < parser->capacity / 4;
  if (too_small || too_large) {
    size_t capacity = smallest_capacity;
    while (capacity < length) capacity *= 2;
    if (!set_capacity(*parser, capacity)) return result;
  }
  if (length > 0) std::memcpy(parser->text, text, length);
  std::memset(parser->text + length, 0, simdjson::SIMDJSON_PADDING);
  // simdjson looks at the byte before the end without asking whether there is one.
  result.error =
      code(length == 0 ? simdjson::EMPTY : parser->parser.parse(parser->text, length, false).error());
  if (result.error == 0) {
    result.tape = parser->parser.doc.tape.get();
    result.strings = parser->parser.doc.string_buf.get();
  }
  return result;
}

const char *json_error_message(int error) {
  return simdjson::error_message(static_cast<simdjson::error_code>(error));
}

size_t json_format_double(double value, char *buffer) {
  double magnitude = std::fabs(value);
  bool fixed = magnitude == 0 || (magnitude >= 1e-4 && magnitude <= 0x1p53);
  auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  char *end = std::to_chars(buffer, buffer + 30, value, format).ptr;
  if (fixed && !std::memchr(buffer, '.', static_cast<size_t>(end - buffer))) {
    *end++ = '.';
    *end++ = '0';
  }
  return static_cast<size_t>(end - buffer);
}
