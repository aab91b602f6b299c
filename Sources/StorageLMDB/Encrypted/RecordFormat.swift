// What an encrypted file holds: records in one named database of LMDB, `@records`, by number. Format 1.
//
//   @records  := number:u64 (big-endian) → record
//   record 0  := header            once, when the file is made (FileHeaderRecord)
//   record 1  := seal ciphertext tag      the root, written by each commit (RootRecord)
//   others    := ciphertext tag           a node of a tree (Node), or a chunk of a large value
//
//   reference := number:u64 seal          how a record is named by who knows its seal, 32 bytes
//   seal      := session:12 nonce:12      what a record was encrypted with
//   tag       := 16 bytes
//
// Integers are little-endian unless it says otherwise. A record is AES-256-GCM under the key of its session, which is
// HKDF-SHA-256 of the data key with the file's ID and the session's as salt. The additional data is
//
//   format:u32 kind:u32 number:u64
//
// A seal is never used twice, and whoever refers to a record holds its seal: so a record that was swapped with
// another one, or put back to an older state, doesn't decrypt. Nodes and whole chunks have one size, a number of LMDB's
// pages with nothing left over: they can't be told apart. The last chunk of a value is as long as they are, or one page.

import CLMDB
import Storage

enum RecordFormat {
  static let version: UInt32 = 1
  static let databaseName = "@records"
  static let headerNumber: UInt64 = 0
  static let rootNumber: UInt64 = 1
  static let firstNumber: UInt64 = 2

  static let tagBytes = 16
  /// LMDB puts a value that doesn't fit a leaf into pages of its own, behind 16 bytes.
  static let pageBytes = 4_096
  static let pageHeaderBytes = 16
  /// Plaintext of a record of one page: short ends of values.
  static let smallBytes = pageBytes - pageHeaderBytes - tagBytes

  /// Pages of a node: what a new file gets. Any of `nodePages` can be read.
  static let standardNodePages = 2
  static let nodePages = 1...8

  /// The key of a record.
  static func key(of number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) } }

  /// Plaintext of a record of so many pages.
  static func payloadBytes(pages: Int) -> Int { pages * pageBytes - pageHeaderBytes - tagBytes }
}

/// What a record is for; part of what its tag vouches for.
enum RecordKind: UInt32 {
  case node = 1
  case chunk = 2
  case root = 3
}

/// The session that encrypted something: one process with a file open. A key belongs to it.
struct SessionID: Hashable {
  var high: UInt64
  var low: UInt32

  static let byteCount = 12

  /// The bytes as they stand in a seal.
  var bytes: [UInt8] {
    withUnsafeBytes(of: high.littleEndian) { high in
      withUnsafeBytes(of: low.littleEndian) { [UInt8](high) + [UInt8]($0) }
    }
  }
}

/// Session and nonce of one encryption.
struct Seal: Equatable {
  static let byteCount = 24
  static let nonceOffset = 12

  var session: UInt64
  /// The rest of the session, and the first four bytes of the nonce above it.
  var middle: UInt64
  var nonce: UInt64

  @inline(__always)
  var sessionID: SessionID { SessionID(high: session, low: UInt32(truncatingIfNeeded: middle)) }

  /// The seal of a value's later chunk.
  @inline(__always)
  func advanced(by count: Int) -> Seal {
    Seal(session: session, middle: middle, nonce: nonce &+ UInt64(count))
  }
}

/// A record's number and its seal.
struct Reference: Equatable {
  static let byteCount = 32

  var number: UInt64
  var seal: Seal

  @inline(__always)
  init(number: UInt64, seal: Seal) {
    self.number = number
    self.seal = seal
  }

  @inline(__always)
  init(_ bytes: UnsafeRawPointer) {
    number = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
    seal = Seal(bytes + 8)
  }

  @inline(__always)
  func write(to bytes: UnsafeMutableRawPointer) {
    bytes.storeBytes(of: number.littleEndian, as: UInt64.self)
    seal.write(to: bytes + 8)
  }
}

extension Seal {
  @inline(__always)
  init(_ bytes: UnsafeRawPointer) {
    session = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
    middle = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    nonce = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
  }

  @inline(__always)
  func write(to bytes: UnsafeMutableRawPointer) {
    bytes.storeBytes(of: session.littleEndian, as: UInt64.self)
    bytes.storeBytes(of: middle.littleEndian, toByteOffset: 8, as: UInt64.self)
    bytes.storeBytes(of: nonce.littleEndian, toByteOffset: 16, as: UInt64.self)
  }
}
