import Foundation
import Storage

extension ConformanceSuite {
  static let encryptionBehaviours: [Behaviour] = [
    Behaviour("a wrong key, no key, and a key of another length are told apart", needs: [.encryption]) {
      suite in
      let content = try suite.withEngine { try suite.fill($0) }
      var options = suite.options()
      options.key = [UInt8](repeating: 9, count: 32)
      try expectError(.wrongKey, from: "opening with a wrong key") {
        _ = try suite.open(suite.path("main"), options)
      }
      options.isReadOnly = true
      options.creation = .openExisting
      try expectError(.wrongKey, from: "opening for reading with a wrong key") {
        _ = try suite.open(suite.path("main"), options)
      }
      options.isReadOnly = false
      options.key = nil
      for label in ["main", "new"] {
        options.creation = .openOrCreate
        try expectError(.keyRequired, from: "opening “\(label)” without a key") {
          _ = try suite.open(suite.path(label), options)
        }
      }
      for count in [0, 16, 31, 33, 64] {
        options.key = [UInt8](repeating: 9, count: count)
        try expectError(.invalidArgument, from: "opening with a key of \(count) bytes") {
          _ = try suite.open(suite.path("main"), options)
        }
      }
      try expectEqual(
        try FileManager.default.contentsOfDirectory(atPath: suite.directory).filter { $0.hasPrefix("new") },
        [],
        "files that a refused opening left")
      try suite.withEngine { try expectEqual(Content($0), content, "content after wrong keys") }
    },

    Behaviour(
      "a key for a plain file is told, and so is a plain opening of an encrypted one", needs: [.encryption]
    ) {
      suite in
      guard let plain = suite.subject.plainCounterpart else { return }
      let path = suite.path("plain")
      let opened = try plain.open(path, EngineOptions())
      let content = try suite.fill(opened)
      try opened.close()
      try expectError(.notEncrypted, from: "a key for a plain file") { _ = try suite.open(path) }
      let again = try plain.open(path, EngineOptions(creation: .openExisting))
      try expectEqual(Content(again), content, "content of the plain file afterwards")
      try again.close()

      try suite.withEngine { _ = try suite.fill($0) }
      try expectError(.notADatabase, .keyRequired, from: "a plain opening of an encrypted file") {
        _ = try plain.open(suite.path("main"), EngineOptions(creation: .openExisting))
      }
    },

    Behaviour("a damaged header is an error that doesn't destroy the file", needs: [.encryption]) { suite in
      let content = try suite.withEngine { try suite.fill($0) }
      let url = URL(fileURLWithPath: suite.path("main"))
      let sound = try Data(contentsOf: url)
      for place in [0, 5, 15, 16, 17, 100, 900] {
        var damaged = sound
        damaged[place] ^= 0x10
        try damaged.write(to: url)
        if !suite.subject.authenticatesHeader {
          do {
            try suite.withEngine("main", suite.options(creation: .openExisting)) {
              try expectEqual(Content($0), content, "content with byte \(place) changed")
            }
            continue
          } catch let error as StorageError {
            try expect(error.code == .damaged || error.code == .notADatabase, "byte \(place): \(error)")
            continue
          }
        }
        // The header has the salt of the key, so a changed salt looks like a wrong key.
        try expectError(.damaged, .wrongKey, .notADatabase, from: "a changed byte \(place)") {
          _ = try suite.open(suite.path("main"), suite.options(creation: .openExisting))
        }
        try expect(try Data(contentsOf: url) == damaged, "a refused opening changed the file")
      }
      try sound.write(to: url)
      try suite.withEngine { try expectEqual(Content($0), content, "content with the header repaired") }
    },

    Behaviour("nothing of the data is readable in any file", needs: [.encryption, .files]) { suite in
      let secret = "a value that nobody may read"
      try suite.withEngine { engine in
        try engine.write { transaction in
          let keyspace = try transaction.createKeyspace("secret-keyspace", shape: .documents)
          for number in 0..<500 {
            try transaction.put("secret-key-\(number)", "\(secret) \(number)", in: keyspace)
          }
        }
        try engine.maintenance.backup(to: suite.path("copy"))
        for name in try FileManager.default.contentsOfDirectory(atPath: suite.directory) {
          let data = try Data(contentsOf: URL(fileURLWithPath: "\(suite.directory)/\(name)"))
          for text in [secret, "secret-key", "SQLite format 3", "CREATE TABLE"] {
            try expect(data.range(of: Data(text.utf8)) == nil, "“\(text)” is readable in \(name)")
          }
        }
      }
      try suite.withEngine("copy", suite.options(creation: .openExisting)) { engine in
        try expectEqual(
          engine.maintenance.statistics().entries, ["secret-keyspace": 500], "entries of the copy")
      }
    },
  ]
}
