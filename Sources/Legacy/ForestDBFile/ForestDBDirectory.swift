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
    var (found, damages) = try Self.first(order, known, numbered, &opening)
    var others: [ForestDBDamage] = []
    try Self.followCompactions(from: &found, numbered, &opening, &damages, &others)
    // One that had not ended, in a directory that doesn't say which file counts.
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
          offset: 0,
          message: "the file \(named), which has the last contents, is missing; \(found.name) is read",
          file: directory + "/" + Self.metaName))
    }
    self.damages = damages
    self.others = others
    key = found.key
    file = try ForestDBFile(found.file, found.commit, scratch: scratch)
  }

  /// Opens the first file that can be read. `known` is the one that the directory names.
  private static func first(
    _ order: [String], _ known: String?, _ names: [String], _ opening: inout Opening
  ) throws -> (Opened, [ForestDBDamage]) {
    var failures: [(name: String, error: ForestDBError)] = []
    for name in order {
      let found: Opened
      do { found = try opening.open(name) } catch let error as ForestDBError {
        if let finished = try opening.finished(name, names, error) {
          return (finished, try damages(failures, finished, known, opening))
        }
        guard [.damaged, .truncated, .keyRequired, .wrongKey].contains(error.code) else { throw error }
        failures.append((name, error))
        // An older file has older contents, and may have another key.
        if name == known, opening.isEncrypted(name) { throw error }
        continue
      }
      return (found, try damages(failures, found, known, opening))
    }
    throw failures.first?.error
      ?? ForestDBError(.notFound, "the directory has no file db.forest.N", path: opening.directory)
  }

  /// What the files mean that couldn't be read before `found`.
  private static func damages(
    _ failures: [(name: String, error: ForestDBError)], _ found: Opened, _ known: String?, _ opening: Opening
  ) throws -> [ForestDBDamage] {
    try failures.compactMap { name, error in
      // A compaction was interrupted before it wrote a header.
      let isPart = [.keyRequired, .wrongKey, .truncated].contains(error.code)
      if name != known, isPart, found.commit.header.newName == name { return nil }
      if name != known, opening.isEncrypted(name) { throw error }
      return damage(error, "an older file is read")
    }
  }

  /// Goes on to the file that a compaction made, if it had ended.
  private static func followCompactions(
    from found: inout Opened, _ names: [String], _ opening: inout Opening, _ damages: inout [ForestDBDamage],
    _ others: inout [ForestDBDamage]
  ) throws {
    for _ in names {
      guard let next = found.commit.header.newName, next != found.name, names.contains(next),
        !damages.contains(where: { $0.file == opening.directory + "/" + next })
      else { return }
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
      return
    }
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
}
