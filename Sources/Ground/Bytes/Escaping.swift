// Escapes text for the formats that the project writes.
//
//   JSON string  = \" \\ \n \r \t, other controls and DEL as \u00xx in lower-case hex, the rest raw
//   CSV field    = in quotes if it has a comma, a quote, a CR or an LF; a quote inside is doubled (RFC 4180)

/// Writes the escape of a byte that a JSON string can't have as it is, 2 or 6 bytes. Returns where it ends.
@inline(__always)
package func writeJSONEscape(
  _ byte: UInt8, to start: UnsafeMutablePointer<UInt8>
) -> UnsafeMutablePointer<UInt8> {
  start[0] = UInt8(ascii: "\\")
  switch byte {
  case 0x22, 0x5C: start[1] = byte
  case 0x0A: start[1] = UInt8(ascii: "n")
  case 0x0D: start[1] = UInt8(ascii: "r")
  case 0x09: start[1] = UInt8(ascii: "t")
  default:
    start[1] = UInt8(ascii: "u")
    start[2] = UInt8(ascii: "0")
    start[3] = UInt8(ascii: "0")
    start[4] = Hex.lower.utf8Start[Int(byte >> 4)]
    start[5] = Hex.lower.utf8Start[Int(byte & 15)]
    return start + 6
  }
  return start + 2
}

extension ByteBuffer {
  /// Appends text as it stands between the quotes of a JSON string. Bytes that aren't UTF-8 are copied.
  package mutating func append(jsonEscaped text: UnsafeRawBufferPointer) {
    guard var from = text.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return }
    let end = from + text.count
    while from < end {
      // Reserve the largest escape for each byte of a run, so that the inner loop needs no checks.
      let run = min(end - from, 64)
      reserve(run * 6)
      var target = base + count
      for byte in UnsafeBufferPointer(start: from, count: run) {
        if byte >= 0x20, byte != 0x22, byte != 0x5C, byte != 0x7F {
          target[0] = byte
          target += 1
          continue
        }
        target = writeJSONEscape(byte, to: target)
      }
      count = target - base
      from += run
    }
  }
}

extension String {
  /// The text as a field of a CSV file.
  package var csvField: String {
    guard utf8.contains(where: { $0 == 0x22 || $0 == 0x2C || $0 == 0x0A || $0 == 0x0D }) else { return self }
    var field: [UInt8] = [0x22]
    for byte in utf8 {
      if byte == 0x22 { field.append(0x22) }
      field.append(byte)
    }
    field.append(0x22)
    return String(decoding: field, as: UTF8.self)
  }
}
