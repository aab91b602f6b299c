// The files of a database in its directory:
//
//   db.forest.N      the database. A compaction, or another key, makes file N + 1
//   db.forest        the same in early releases
//   db.forest.meta   u32 version, 1     1,024 bytes: the name of the file that counts, a zero byte, anything
//                    u32 CRC-32 of all that is before; never encrypted
//
// A file names the one that replaces it as soon as a compaction begins; the new file names the old one when it is
// complete.

import Encryption

#if canImport(Glibc)
  import Glibc
#endif

/// Finds the file of a directory that counts, and opens it.
package struct ForestDBDirectory {
  /// The file that counts.
  package let file: ForestDBFile
  /// The key; nil if the file isn't encrypted.
  package let key: SecretBytes?
  /// What of the directory is damaged.
  package let damages: [ForestDBDamage]
  /// Files that can't be read and probably hold nothing else than the one that counts.
  package let others: [ForestDBDamage]

  private struct Opened {
    let name: String
    let file: BlockFile
    let commit: LastCommit
    let key: SecretBytes?
  }

  /// Opens the database in a directory.
  ///
  /// - Parameters:
  ///   - names: the names of the files in the directory.
  ///   - keys: the possible keys; empty for none.
  ///   - scratch: a directory for temporary files.
  /// - Throws: `ForestDBError`; `keyRequired` without keys, `wrongKey` with keys.
  package init(
    _ directory: String, names: [String], keys: [() throws -> SecretBytes], scratch: String
  ) throws {
    let numbered = names.filter { Self.number($0) != nil }.sorted {
      (Self.number($0) ?? -1, $0) > (Self.number($1) ?? -1, $1)
    }
    guard !numbered.isEmpty else {
      throw ForestDBError(.notFound, "the directory has no file db.forest.N", path: directory)
    }
    let named = Self.live(directory + "/" + Self.metaName)
    let known = named.flatMap { numbered.contains($0) ? $0 : nil }
    let order = (known.map { [$0] } ?? []) + numbered.filter { $0 != known }
    var opening = Opening(directory: directory, keys: keys)
    var failures: [(name: String, error: ForestDBError)] = []
    var found: Opened?
    for name in order {
      do {
        found = try opening.open(name)
        break
      } catch let error as ForestDBError {
        if let finished = try opening.finished(name, numbered, error) {
          found = finished
          break
        }
        guard [.damaged, .truncated, .keyRequired, .wrongKey].contains(error.code) else { throw error }
        failures.append((name, error))
        // An older file has older contents, and may have another key.
        if name == known, opening.isEncrypted(name) { throw error }
      }
    }
    guard var found else {
      throw failures.first?.error
        ?? ForestDBError(.notFound, "the directory has no file db.forest.N", path: directory)
    }
    var damages: [ForestDBDamage] = []
    for (name, error) in failures {
      // A compaction was interrupted before it wrote a header.
      let isPart = [.keyRequired, .wrongKey, .truncated].contains(error.code)
      if name != known, isPart, found.commit.header.newName == name { continue }
      if name != known, opening.isEncrypted(name) { throw error }
      damages.append(Self.damage(error, "an older file is read"))
    }
    var others: [ForestDBDamage] = []
    // A compaction that had ended.
    for _ in numbered {
      guard let next = found.commit.header.newName, next != found.name, numbered.contains(next),
        !failures.contains(where: { $0.name == next })
      else { break }
      do {
        let newer = try opening.open(next)
        if newer.commit.header.oldName == found.name {
          found = newer
          continue
        }
        // What is damaged may have said so.
        if let damage = newer.commit.damages.first {
          damages.append(
            ForestDBDamage(
              offset: damage.offset, message: "\(damage.message), so the file before it is read",
              file: newer.file.path))
        }
      } catch let error as ForestDBError where error.code == .damaged {
        damages.append(Self.damage(error, "the file before it is read"))
      } catch let error as ForestDBError {
        // With another key, nothing tells whether it is complete. Until then, this one is.
        if opening.isEncrypted(next) { others.append(Self.damage(error, "\(found.name) is read instead")) }
      }
      break
    }
    // One that had not, in a directory that doesn't say which file counts.
    if known == nil, found.commit.header.oldName == nil {
      for name in numbered where name != found.name {
        guard let older = try? opening.open(name), older.commit.header.newName == found.name else { continue }
        found = older
        break
      }
    }
    if let named, known == nil, found.commit.header.oldName != named {
      damages.append(
        ForestDBDamage(
          offset: 0, message: "the file \(named), which has the last contents, is missing; \(found.name) is read",
          file: directory + "/" + Self.metaName))
    }
    self.damages = damages
    self.others = others
    key = found.key
    file = try ForestDBFile(found.file, found.commit, scratch: scratch)
  }

  private static func damage(_ error: ForestDBError, _ consequence: String) -> ForestDBDamage {
    ForestDBDamage(offset: error.offset ?? 0, message: "\(error.message); \(consequence)", file: error.path)
  }

  static let metaName = "db.forest.meta"
  private static let base = "db.forest"

  /// The number of a file name: -1 for that without one; nil if it isn't the name of a database file.
  private static func number(_ name: String) -> Int? {
    guard name != base else { return -1 }
    guard name.hasPrefix(base + ".") else { return nil }
    let digits = name.dropFirst(base.count + 1)
    guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
    return Int(digits)
  }

  /// Returns the name in the meta file; nil if it isn't valid.
  private static func live(_ path: String) -> String? {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    let length = 1_032
    return withUnsafeTemporaryAllocation(byteCount: length, alignment: 8) { bytes -> String? in
      guard pread(descriptor, bytes.baseAddress, length, 0) == length,
        let start = bytes.baseAddress.map({ UnsafeRawPointer($0) }),
        start.integer(0, as: UInt32.self) == 1,
        start.integer(length - 4, as: UInt32.self)
          == CRC32.of(UnsafeRawBufferPointer(start: start, count: length - 4))
      else { return nil }
      let name = UnsafeRawBufferPointer(start: start + 4, count: length - 8).prefix { $0 != 0 }
      return String(decoding: name, as: UTF8.self).split { $0 == "/" || $0 == "\\" }.last.map(String.init)
    }
  }

  /// Opens files with the key that the first one has.
  private struct Opening {
    let directory: String
    let keys: [() throws -> SecretBytes]
    var derived: [SecretBytes] = []

    init(directory: String, keys: [() throws -> SecretBytes]) {
      self.directory = directory
      self.keys = keys
    }

    mutating func open(_ name: String) throws -> Opened {
      let path = directory + "/" + name
      do {
        let opened = try open(name, path, nil)
        guard keys.isEmpty else {
          throw ForestDBError(.notEncrypted, "a key was given, but the file isn't encrypted", path: path)
        }
        return opened
      } catch let error as ForestDBError where error.code == .keyRequired && !keys.isEmpty {}
      for number in keys.indices {
        if number == derived.count { derived.append(try keys[number]()) }
        do { return try open(name, path, derived[number]) } catch let error as ForestDBError
          where error.code == .keyRequired
        {}
      }
      throw ForestDBError(
        .wrongKey, "the key or the password is wrong, or the file isn't a ForestDB file", path: path)
    }

    /// Returns the file that replaced one which isn't encrypted, although keys were given: the key was set, but the
    /// directory doesn't say so yet.
    mutating func finished(_ name: String, _ names: [String], _ error: ForestDBError) throws -> Opened? {
      guard error.code == .notEncrypted,
        let next = try open(name, directory + "/" + name, nil).commit.header.newName, next != name,
        names.contains(next), let newer = try? open(next), newer.commit.header.oldName == name
      else { return nil }
      return newer
    }

    /// Whether a file that can't be read looks like one with a key: its first blocks aren't all of ForestDB, and their
    /// bytes are as different as those of ciphertext.
    func isEncrypted(_ name: String) -> Bool {
      guard let file = try? BlockFile(directory + "/" + name, key: nil) else { return false }
      var isForeign = false
      for number in 0..<min(file.count, 8) {
        guard let block = try? file.block(number) else { return false }
        var isThere = [Bool](repeating: false, count: 256)
        for byte in UnsafeRawBufferPointer(start: block, count: BlockFile.blockBytes) {
          isThere[Int(byte)] = true
        }
        // All 256 are there in nearly every block of ciphertext.
        guard isThere.count(where: { $0 }) >= 250 else { return false }
        if !BlockMarker.all.contains(block.load(fromByteOffset: BlockFile.blockBytes - 1, as: UInt8.self)) {
          isForeign = true
        }
      }
      return isForeign
    }

    private func open(_ name: String, _ path: String, _ key: SecretBytes?) throws -> Opened {
      let file = try BlockFile(path, key: key)
      return Opened(name: name, file: file, commit: try LastCommit(file), key: key)
    }
  }
}
