// simdjson's own way of parsing a whole text: its DOM parser, the buffers kept from text to text.
#include <simdjson.h>

extern "C" {
void *limit_json_create(void);
void limit_json_destroy(void *parser);
int limit_json_parse(void *parser, const void *text, size_t count);
}

void *limit_json_create(void) { return new simdjson::dom::parser; }

void limit_json_destroy(void *parser) { delete static_cast<simdjson::dom::parser *>(parser); }

int limit_json_parse(void *parser, const void *text, size_t count) {
  simdjson::dom::element element;
  auto *dom = static_cast<simdjson::dom::parser *>(parser);
  // False: the text is followed by readable bytes, so it isn't copied.
  return dom->parse(static_cast<const uint8_t *>(text), count, false).get(element) == simdjson::SUCCESS;
}
