// Frames between a host and this program (docs/scripts.md). All integers are little-endian.
//
//   frame := length:u32  type:u8  ticket:u32  payload      length: the bytes after it, 5 … maximumLength
//
// Nothing that comes from outside is trusted: a length past its limit ends the program, and a payload that ends
// early makes the request malformed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace scripts {

constexpr uint16_t protocolVersion = 3;
constexpr uint32_t maximumLength = 128u << 20;

enum class Request : uint8_t { open = 1, close = 2, map = 3, reduce = 4, filter = 5, validate = 6, mapAlone = 7 };

enum class Answer : uint8_t {
  hello = 0x80,
  opened = 0x81,
  rows = 0x82,
  mapped = 0x83,
  value = 0x84,
  selected = 0x85,
  verdict = 0x86,
  failed = 0x87,
  working = 0x88,
  closed = 0x89,
};

enum class Failure : uint8_t {
  compilation = 1,
  exception = 2,
  stopped = 3,
  malformed = 4,
  missing = 5,
  invalidDefinition = 6,
  // The program ends after it.
  memory = 7,
};

constexpr uint32_t noDocument = 0xFFFFFFFF;

// Reads a payload from the front. After a read past the end all reads give nothing, and `good` is false.
class PayloadReader {
 public:
  PayloadReader(const uint8_t* bytes, size_t count) : next(bytes), end(bytes + count) {}

  uint8_t u8();
  uint16_t u16();
  uint32_t u32();
  // length:u32, bytes. Valid as long as the payload.
  std::string_view text();
  bool good() const { return !failed; }
  bool finished() const { return !failed && next == end; }
  size_t left() const { return failed ? 0 : size_t(end - next); }

 private:
  const uint8_t* take(size_t count);

  const uint8_t* next;
  const uint8_t* end;
  bool failed = false;
};

// A frame that is being written. It is sent whole.
class FrameWriter {
 public:
  void begin(Answer type, uint32_t ticket);
  void u8(uint8_t value) { bytes.push_back(char(value)); }
  void u16(uint16_t value);
  void u32(uint32_t value);
  void text(std::string_view value);
  // A text of at most `limit` bytes, cut between characters.
  void shortText(std::string_view value, size_t limit);
  void setU32(size_t at, uint32_t value);
  size_t size() const { return bytes.size(); }
  // Sends the frame on standard output, and ends the program when nobody reads it.
  void send();

  std::string bytes;
};

// Reads the next frame from standard input, without its length. Returns false at the end of the input, and ends
// the program when the input isn't frames.
bool readFrame(std::vector<uint8_t>& frame);

}  // namespace scripts
