import Foundation
import Storage

extension Child {
  /// `keep PATH WAY` does what the compiler forbids for spans: it keeps a pointer to lent bytes after the
  /// closure and reads from it. With a strict engine the process dies of SIGSEGV. It prints `lent` before,
  /// and `survived` if it doesn't die.
  ///
  /// WAY is the kind of read: `read`, `scan`, `cursor`, `follow` or `getMany`. `past` reads one byte past the
  /// end while the bytes are lent, and `sound` reads only allowed bytes.
  func keepLentPointer() throws {
    // Sanitizers would catch the signal and exit.
    signal(SIGSEGV, SIG_DFL)
    let opened = try engine.open(arguments[0], options())
    let keyspace = try opened.write { transaction in
      let keyspace = try transaction.createKeyspace("k", shape: .documents)
      try transaction.put("a", "a", in: keyspace)
      return keyspace
    }
    let (key, way) = ([UInt8(ascii: "a")], arguments[1])
    var kept: UnsafeRawBufferPointer?
    // Reads the lent bytes, which is allowed, and keeps their address.
    func take(_ bytes: RawSpan) throws {
      try expect(bytes.isEqual(to: key.span.bytes), "what was lent isn't what was put")
      bytes.withUnsafeBytes { kept = $0 }
      say("lent")
      if way == "past" { readByte(kept?.baseAddress.map { $0 + 1 }) }
    }
    try opened.read { transaction in
      switch way {
      case "scan":
        try transaction.scan(keyspace) { key, _ in
          try take(key)
          return true
        }
      case "cursor":
        let cursor = try transaction.cursor(in: keyspace, .all)
        _ = try cursor.first { _, value in try take(value) }
      case "follow":
        try transaction.follow(keyspace, .all, order: .ascending, into: keyspace) { key, _ in
          .inKey(0..<key.byteCount)
        } _: { _, _, found in
          try take(found)
          return true
        }
      case "getMany":
        var keys = KeyList()
        keys.append(key.span.bytes)
        try transaction.getMany(keys, in: keyspace) { _, value in
          try take(value)
          return true
        }
      default: _ = try transaction.withValue(at: key, in: keyspace) { try take($0) }
      }
      if way != "sound" { readByte(kept?.baseAddress) }
    }
    try opened.close()
    say("survived")
  }

  @inline(never)
  private func readByte(_ address: UnsafeRawPointer?) {
    // The byte is printed, so that the read isn't optimized away.
    if let address { say("byte \(address.load(as: UInt8.self))") }
  }
}
