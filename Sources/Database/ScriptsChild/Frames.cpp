#include "Frames.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <unistd.h>

namespace scripts {

const uint8_t* PayloadReader::take(size_t count) {
  if (failed || size_t(end - next) < count) {
    failed = true;
    return nullptr;
  }
  const uint8_t* taken = next;
  next += count;
  return taken;
}

uint8_t PayloadReader::u8() {
  const uint8_t* bytes = take(1);
  return bytes ? *bytes : 0;
}

uint16_t PayloadReader::u16() {
  const uint8_t* bytes = take(2);
  return bytes ? uint16_t(bytes[0] | bytes[1] << 8) : 0;
}

uint32_t PayloadReader::u32() {
  const uint8_t* bytes = take(4);
  return bytes ? uint32_t(bytes[0]) | uint32_t(bytes[1]) << 8 | uint32_t(bytes[2]) << 16 | uint32_t(bytes[3]) << 24
               : 0;
}

std::string_view PayloadReader::text() {
  uint32_t count = u32();
  const uint8_t* bytes = take(count);
  return bytes ? std::string_view(reinterpret_cast<const char*>(bytes), count) : std::string_view();
}

void FrameWriter::begin(Answer type, uint32_t ticket) {
  bytes.clear();
  u32(0);
  u8(uint8_t(type));
  u32(ticket);
}

void FrameWriter::u16(uint16_t value) {
  u8(uint8_t(value));
  u8(uint8_t(value >> 8));
}

void FrameWriter::u32(uint32_t value) {
  char four[4] = {char(value), char(value >> 8), char(value >> 16), char(value >> 24)};
  bytes.append(four, 4);
}

void FrameWriter::setU32(size_t at, uint32_t value) {
  for (size_t index = 0; index < 4; index++) bytes[at + index] = char(value >> (8 * index));
}

void FrameWriter::text(std::string_view value) {
  u32(uint32_t(value.size()));
  bytes.append(value);
}

void FrameWriter::shortText(std::string_view value, size_t limit) {
  if (value.size() > limit) {
    while (limit > 0 && (uint8_t(value[limit]) & 0xC0) == 0x80) limit--;
    value = value.substr(0, limit);
  }
  text(value);
}

void FrameWriter::send() {
  if (bytes.size() - 4 > maximumLength) _exit(4);
  setU32(0, uint32_t(bytes.size() - 4));
  const char* next = bytes.data();
  size_t left = bytes.size();
  while (left > 0) {
    ssize_t written = write(STDOUT_FILENO, next, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(0);
    next += written;
    left -= size_t(written);
  }
  if (bytes.capacity() > (4u << 20)) {
    bytes = std::string();
  } else {
    bytes.clear();
  }
}

// Returns the number of bytes read: fewer than `count` only at the end of the input.
static size_t readFully(uint8_t* into, size_t count) {
  size_t done = 0;
  while (done < count) {
    ssize_t got = read(STDIN_FILENO, into + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) _exit(0);
    if (got == 0) break;
    done += size_t(got);
  }
  return done;
}

bool readFrame(std::vector<uint8_t>& frame) {
  uint8_t header[4];
  size_t got = readFully(header, 4);
  if (got == 0) return false;
  if (got < 4) _exit(2);
  uint32_t length = PayloadReader(header, 4).u32();
  if (length < 5 || length > maximumLength) _exit(2);
  // Memory is taken for what arrives and not for what is announced.
  if (frame.capacity() > (4u << 20) && length < (1u << 20)) frame = std::vector<uint8_t>();
  frame.clear();
  while (frame.size() < length) {
    size_t before = frame.size(), step = std::min<size_t>(length - before, 1u << 20);
    frame.resize(before + step);
    if (readFully(frame.data() + before, step) < step) _exit(2);
  }
  return true;
}

}  // namespace scripts
