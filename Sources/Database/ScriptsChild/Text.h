// UTF-8 from outside, and the UTF-16 of the engine.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace scripts {

// Whether JSON has more than `levels` arrays and objects in each other.
bool isDeeper(std::string_view json, size_t levels);

bool isASCII(std::string_view text);

// Appends UTF-16. What isn't UTF-8 becomes U+FFFD.
void appendUTF16(std::string_view text, std::u16string& to);

// Appends the UTF-8 of JSON that the engine wrote. Lone surrogates, which it escapes, become U+FFFD.
void appendJSON(const char16_t* text, size_t count, std::string& to);

// Appends a string of Latin-1 as JSON.
void appendJSONString(const unsigned char* text, size_t count, std::string& to);

}  // namespace scripts
