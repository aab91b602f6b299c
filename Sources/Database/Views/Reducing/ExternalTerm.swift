import Bytes
import Fleece

// Erlang's external form of the JSON values of CouchDB:
//
//   term      := 83 value
//   value     := 64 length:u16 text            null, true, false
//              | 61 u8 | 62 i32                integers of 0 to 255, others of 32 bits
//              | 6E n:u8 sign:u8 n bytes       other integers, the least byte first
//              | 46 bits of the double
//              | 6D length:u32 UTF-8           strings
//              | 6A                            no items
//              | 6B length:u16 bytes           an array of integers from 0 to 255, up to 65,535 of them
//              | 6C length:u32 value* 6A       other arrays
//              | 68 01 list                    objects: a list of members
//   member    := 68 02 name value
//
// All integers are big-endian but those of 6E. The first byte, 83, is hexadecimal like all others.

/// Writes JSON in the form in which CouchDB hashes keys.
enum ExternalTerm {
  static func append(_ scanner: inout JSONScanner, to term: inout ByteBuffer) throws {
    term.append(0x83)
    try value(&scanner, &term, 0)
    try scanner.finish()
  }

  private static func value(_ scanner: inout JSONScanner, _ term: inout ByteBuffer, _ depth: Int) throws {
    guard depth < JSONScanner.maximumDepth else { throw ViewReduceError.damaged }
    switch try scanner.next() {
    case .null:
      try scanner.literal(4)
      atom("null", &term)
    case .true:
      try scanner.literal(4)
      atom("true", &term)
    case .false:
      try scanner.literal(5)
      atom("false", &term)
    case .number: number(try scanner.number(), &term)
    case .string: binary(try scanner.string(), &term)
    case .array: try array(&scanner, &term, depth)
    case .object:
      term.append(0x68)
      term.append(1)
      let start = term.count
      term.append(0x6C)
      term.append(bigEndian: UInt32(0))
      var count: UInt32 = 0
      try scanner.members { name, scanner in
        count += 1
        term.append(0x68)
        term.append(2)
        binary(name, &term)
        try value(&scanner, &term, depth + 1)
      }
      end(count, start, &term)
    }
  }

  private static func array(_ scanner: inout JSONScanner, _ term: inout ByteBuffer, _ depth: Int) throws {
    let start = term.count
    term.append(0x6C)
    term.append(bigEndian: UInt32(0))
    var count: UInt32 = 0
    // The items, if all of them are bytes so far.
    var bytes: [UInt8]? = []
    try scanner.array { scanner in
      count += 1
      let item = term.count
      try value(&scanner, &term, depth + 1)
      if term.count == item + 2, term.base[item] == 0x61, count <= 65_535 {
        bytes?.append(term.base[item + 1])
      } else {
        bytes = nil
      }
    }
    guard let bytes, count > 0 else { return end(count, start, &term) }
    term.truncate(to: start)
    term.append(0x6B)
    term.append(bigEndian: UInt16(bytes.count))
    bytes.withUnsafeBytes { term.append($0) }
  }

  /// Writes the number of items of the list that begins at `start`, and its end.
  private static func end(_ count: UInt32, _ start: Int, _ term: inout ByteBuffer) {
    if count == 0 {
      term.truncate(to: start)
    } else {
      for index in 0..<4 {
        term.base[start + 1 + index] = UInt8(truncatingIfNeeded: count >> UInt32(24 - 8 * index))
      }
    }
    term.append(0x6A)
  }

  private static func atom(_ name: StaticString, _ term: inout ByteBuffer) {
    term.append(0x64)
    term.append(bigEndian: UInt16(name.utf8CodeUnitCount))
    term.append(UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
  }

  private static func binary(_ bytes: [UInt8], _ term: inout ByteBuffer) {
    term.append(0x6D)
    term.append(bigEndian: UInt32(truncatingIfNeeded: bytes.count))
    bytes.withUnsafeBytes { term.append($0) }
  }

  private static func number(_ number: ReducedNumber, _ term: inout ByteBuffer) {
    switch number {
    case .double(let value):
      term.append(0x46)
      term.append(bigEndian: value.bitPattern)
    case .integer(let value):
      if let byte = UInt8(exactly: value) {
        term.append(0x61)
        term.append(byte)
      } else if let small = Int32(exactly: value) {
        term.append(0x62)
        term.append(bigEndian: small)
      } else {
        let magnitude = value.magnitude
        let length = (135 - magnitude.leadingZeroBitCount) / 8
        term.append(0x6E)
        term.append(UInt8(length))
        term.append(value < 0 ? 1 : 0)
        for index in 0..<length { term.append(UInt8(truncatingIfNeeded: magnitude >> (8 * index))) }
      }
    }
  }
}
