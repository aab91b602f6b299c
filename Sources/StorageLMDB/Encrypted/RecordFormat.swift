// The contents of an encrypted file: numbered records in one named database of LMDB, `@records`. Format 1.
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
// Integers are little-endian unless noted. A record is encrypted with AES-256-GCM under the key of its
// session. That key is HKDF-SHA-256 of the data key, with the file's ID and the session's ID as salt. The
// additional data are
//
//   format:u32 kind:u32 number:u64
//
// A seal is never used twice, and each reference to a record includes its seal. So a record that was swapped
// with another one, or reset to an older state, doesn't decrypt. Nodes and whole chunks have the same size: a
// whole number of LMDB's pages. They can't be told apart. The last chunk of a value has that size or one
// page.

import CLMDB
import Storage

enum RecordFormat {
  static let version: UInt32 = 1
  static let databaseName = "@records"
  static let headerNumber: UInt64 = 0
  static let rootNumber: UInt64 = 1
  static let firstNumber: UInt64 = 2

  static let tagBytes = 16
  /// LMDB stores a value that doesn't fit into a leaf on pages of its own, after a header of 16 bytes.
  static let pageBytes = 4_096
  static let pageHeaderBytes = 16
  /// The plaintext size of a one-page record, which holds a short end of a value.
  static let smallBytes = pageBytes - pageHeaderBytes - tagBytes

  /// The node size of a new file, in pages. Any size in `nodePages` can be read.
  static let standardNodePages = 2
  static let nodePages = 1...8

  /// Returns the key of a record.
  static func key(of number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) } }

  /// Returns the plaintext size of a record of `pages` pages.
  static func payloadBytes(pages: Int) -> Int { pages * pageBytes - pageHeaderBytes - tagBytes }
}

/// The kind of a record. The tag authenticates it.
enum RecordKind: UInt32 {
  case node = 1
  case chunk = 2
  case root = 3
}

/// The random ID of a session, which has its own key. A session is the use of a file by one process, up to
/// 2^40 records.
struct SessionID: Hashable {
  var high: UInt64
  var low: UInt32

  static let byteCount = 12

  /// The bytes as stored in a seal.
  var bytes: [UInt8] {
    withUnsafeBytes(of: high.littleEndian) { high in
      withUnsafeBytes(of: low.littleEndian) { [UInt8](high) + [UInt8]($0) }
    }
  }
}

/// The session and the nonce of one encryption.
struct Seal: Equatable {
  static let byteCount = 24
  static let nonceOffset = 12

  var session: UInt64
  /// The rest of the session in the lower 32 bits, and the first four bytes of the nonce above.
  var middle: UInt64
  var nonce: UInt64

  @inline(__always)
  var sessionID: SessionID { SessionID(high: session, low: UInt32(truncatingIfNeeded: middle)) }

  /// Returns the seal of a later chunk of the value.
  @inline(__always)
  func advanced(by count: Int) -> Seal {
    Seal(session: session, middle: middle, nonce: nonce &+ UInt64(count))
  }
}

/// The number of a record and its seal.
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
