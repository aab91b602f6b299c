#include "Text.h"

#include <cstdint>
#include <cstring>

namespace scripts {

bool isASCII(std::string_view text) {
  const char* next = text.data();
  size_t left = text.size();
  for (; left >= 8; next += 8, left -= 8) {
    uint64_t word;
    memcpy(&word, next, 8);
    if (word & 0x8080808080808080u) return false;
  }
  for (; left > 0; next++, left--) {
    if (*next & 0x80) return false;
  }
  return true;
}

bool isDeeper(std::string_view json, size_t levels) {
  if (json.size() <= levels) return false;
  size_t depth = 0;
  bool inString = false;
  for (size_t at = 0; at < json.size(); at++) {
    char byte = json[at];
    if (byte == '"') {
      inString = !inString;
    } else if (inString) {
      if (byte == '\\') at++;
    } else if (byte == '[' || byte == '{') {
      if (++depth > levels) return true;
    } else if ((byte == ']' || byte == '}') && depth > 0) {
      depth--;
    }
  }
  return false;
}

void appendUTF16(std::string_view text, std::u16string& to) {
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(text.data());
  size_t count = text.size(), at = 0;
  to.reserve(to.size() + count);
  while (at < count) {
    uint8_t first = bytes[at];
    if (first < 0x80) {
      to.push_back(first);
      at++;
      continue;
    }
    size_t more = first >= 0xF0 && first < 0xF5 ? 3 : first >= 0xE0 && first < 0xF0 ? 2
                : first >= 0xC2 && first < 0xE0 ? 1 : 0;
    uint32_t scalar = more == 3 ? first & 0x07 : more == 2 ? first & 0x0F : first & 0x1F;
    size_t used = 1;
    while (used <= more && at + used < count && (bytes[at + used] & 0xC0) == 0x80) {
      scalar = scalar << 6 | (bytes[at + used] & 0x3F);
      used++;
    }
    bool whole = more > 0 && used == more + 1 && !(more == 2 && (scalar < 0x800 || (scalar & 0xF800) == 0xD800)) &&
                 !(more == 3 && (scalar < 0x10000 || scalar > 0x10FFFF));
    if (!whole) {
      to.push_back(0xFFFD);
      at++;
    } else {
      if (scalar >= 0x10000) {
        to.push_back(char16_t(0xD7C0 + (scalar >> 10)));
        to.push_back(char16_t(0xDC00 | (scalar & 0x3FF)));
      } else {
        to.push_back(char16_t(scalar));
      }
      at += used;
    }
  }
}

void appendJSON(const char16_t* text, size_t count, std::string& to) {
  size_t start = to.size();
  // A unit is three bytes at most, and a pair of units four. Long texts don't get room for what they may take.
  size_t room = 3 * count;
  if (count > 65536) {
    room = count;
    for (size_t at = 0; at < count; at++) room += size_t(text[at] >= 0x80) + size_t(text[at] >= 0x800);
  }
  to.resize(start + room);
  char* out = to.data() + start;
  size_t at = 0;
  while (at < count) {
    char16_t unit = text[at];
    if (unit < 0x80 && unit != u'\\') {
      *out++ = char(unit);
      at++;
    } else if (unit == u'\\' && at + 1 < count) {
      if (text[at + 1] == u'u' && at + 5 < count && (text[at + 2] | 0x20) == u'd') {
        memcpy(out, "\xEF\xBF\xBD", 3);
        out += 3;
        at += 6;
      } else {
        *out++ = char(unit);
        *out++ = char(text[at + 1]);
        at += 2;
      }
    } else if (unit < 0x800) {
      if (unit < 0x80) {
        *out++ = char(unit);
      } else {
        *out++ = char(0xC0 | unit >> 6);
        *out++ = char(0x80 | (unit & 0x3F));
      }
      at++;
    } else if ((unit & 0xFC00) == 0xD800 && at + 1 < count && (text[at + 1] & 0xFC00) == 0xDC00) {
      uint32_t scalar = 0x10000 + ((uint32_t(unit) & 0x3FF) << 10) + (uint32_t(text[at + 1]) & 0x3FF);
      *out++ = char(0xF0 | scalar >> 18);
      *out++ = char(0x80 | (scalar >> 12 & 0x3F));
      *out++ = char(0x80 | (scalar >> 6 & 0x3F));
      *out++ = char(0x80 | (scalar & 0x3F));
      at += 2;
    } else {
      uint32_t scalar = (unit & 0xF800) == 0xD800 ? 0xFFFD : unit;
      *out++ = char(0xE0 | scalar >> 12);
      *out++ = char(0x80 | (scalar >> 6 & 0x3F));
      *out++ = char(0x80 | (scalar & 0x3F));
      at++;
    }
  }
  to.resize(size_t(out - to.data()));
}

void appendJSONString(const unsigned char* text, size_t count, std::string& to) {
  static const char digits[] = "0123456789abcdef";
  size_t room = count + 2;
  for (size_t at = 0; at < count; at++) {
    room += size_t(text[at] >= 0x80 || text[at] == '"' || text[at] == '\\') + 5 * size_t(text[at] < 0x20);
  }
  to.reserve(to.size() + room);
  to.push_back('"');
  for (size_t at = 0; at < count; at++) {
    unsigned char byte = text[at];
    if (byte >= 0x80) {
      to.push_back(char(0xC0 | byte >> 6));
      to.push_back(char(0x80 | (byte & 0x3F)));
    } else if (byte == '"' || byte == '\\') {
      to.push_back('\\');
      to.push_back(char(byte));
    } else if (byte >= 0x20) {
      to.push_back(char(byte));
    } else {
      to.push_back('\\');
      switch (byte) {
        case '\b': to.push_back('b'); break;
        case '\f': to.push_back('f'); break;
        case '\n': to.push_back('n'); break;
        case '\r': to.push_back('r'); break;
        case '\t': to.push_back('t'); break;
        default:
          to.append("u00");
          to.push_back(digits[byte >> 4]);
          to.push_back(digits[byte & 15]);
      }
    }
  }
  to.push_back('"');
}

}  // namespace scripts
