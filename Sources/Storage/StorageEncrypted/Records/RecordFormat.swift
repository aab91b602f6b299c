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

import StorageLMDB

enum RecordFormat {
  static let version: UInt32 = 1
  static let databaseName = LMDBEngine.encryptedKeyspace
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
