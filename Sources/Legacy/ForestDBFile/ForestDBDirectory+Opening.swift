import Encryption

extension ForestDBDirectory {
  struct Opened {
    let name: String
    let file: BlockFile
    let commit: LastCommit
    let key: SecretBytes?
  }

  /// Opens files with the key that the first one has.
  struct Opening {
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
