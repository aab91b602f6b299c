import Foundation
import Storage

extension ConformanceSuite {
  static let fileBehaviours: [Behaviour] = [
    Behaviour("what was committed is there after reopening, at every durability") { suite in
      for durability in Durability.allCases {
        let label = "reopened-\(durability.rawValue)"
        let options = suite.options(durability: durability)
        var content = try suite.withEngine(label, options) { engine in
          try expectEqual(engine.durability, durability, "durability")
          return try suite.fill(engine)
        }
        for round in 0..<3 {
          content = try suite.withEngine(label, options) { engine in
            try expectEqual(Content(engine), content, "content after reopening \(round)")
            try engine.write { try $0.put("again\(round)", "x", in: $0.known("documents")) }
            return try Content(engine)
          }
        }
        try suite.withEngine(label, suite.options(durability: .full)) {
          try expectEqual($0.maintenance.checkIntegrity(), [], "faults")
        }
      }
    },

    Behaviour("numbers of keyspaces aren't used again after reopening") { suite in
      let first = try suite.withEngine { engine in
        let keyspace = try engine.write { try $0.createKeyspace("k", shape: .entries) }
        try engine.write { try $0.dropKeyspace(keyspace) }
        return keyspace
      }
      try suite.withEngine { engine in
        let second = try engine.write { try $0.createKeyspace("k", shape: .entries) }
        try expect(second.number != first.number, "number \(first.number) was used twice")
        try suite.expectStale(first, engine)
      }
    },

    Behaviour("an engine says what it is") { suite, engine in
      try expectEqual(engine.name, suite.subject.engine.name, "name")
      try expectEqual(engine.location, suite.path("main"), "path")
      try expect(!engine.isReadOnly, "isReadOnly")
      try expect(engine.library.contains { $0.isNumber }, "“\(engine.library)” names no version")
    },

    Behaviour("a compression that the engine doesn't have is refused") { suite in
      var options = suite.options()
      options.compression = "brotli"
      try expectError(.invalidArgument, from: "an unknown compression") {
        _ = try suite.open(suite.path("none"), options)
      }
      for compression in suite.subject.engine.compressions {
        options.compression = compression
        try suite.withEngine(compression, options) { _ = try suite.fill($0) }
      }
    },

    Behaviour("opening finds, makes, or refuses, as it is told") { suite in
      try expectError(.notFound, from: "openExisting without a file") {
        _ = try suite.open(suite.path("none"), suite.options(creation: .openExisting))
      }
      try expectError(.notFound, from: "a read-only opening without a file") {
        _ = try suite.open(suite.path("none"), suite.options(creation: .openExisting, isReadOnly: true))
      }
      try expect(
        try FileManager.default.contentsOfDirectory(atPath: suite.directory) == [],
        "a refused opening left a file")
      try suite.withEngine("made", suite.options(creation: .createNew)) { _ = try suite.fill($0) }
      try expectError(.alreadyExists, from: "createNew with a file") {
        _ = try suite.open(suite.path("made"), suite.options(creation: .createNew))
      }
      try suite.withEngine("made", suite.options(creation: .openExisting)) {
        try expectEqual(Content($0).tables.count, 3, "keyspaces after a refused creation")
      }
    },

    Behaviour(
      "opening in a directory that isn't there, or a directory itself, is a typed error", needs: [.files]
    ) {
      suite in
      for creation in [FileCreation.openOrCreate, .createNew, .openExisting] {
        try expectError(.notFound, .ioError, from: "\(creation) in no directory") {
          _ = try suite.open("\(suite.directory)/no/such/file", suite.options(creation: creation))
        }
      }
      let path = suite.path("directory")
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      for creation in [FileCreation.openOrCreate, .openExisting] {
        try expectError(
          .notADatabase, .ioError, .invalidArgument, .permissionDenied, from: "\(creation) of a directory"
        ) {
          _ = try suite.open(path, suite.options(creation: creation))
        }
      }
    },

    Behaviour("a second opening of a path in one process shares the data or is refused") { suite in
      try suite.withEngine { engine in
        _ = try suite.fill(engine)
        do {
          let second = try suite.open(suite.path("main"))
          defer { try? second.close() }
          try second.write { try $0.put("second", "x", in: $0.known("documents")) }
          try expectEqual(engine.read { try $0.text("second", in: $0.known("documents")) }, "x", "the entry")
        } catch let error as StorageError { try expectEqual(error.code, .inUse, "\(error)") }
        try engine.write { try $0.put("first", "y", in: $0.known("documents")) }
        try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
      }
      try suite.withEngine {
        try expectEqual($0.read { try $0.text("first", in: $0.known("documents")) }, "y", "the entry")
      }
    },

    Behaviour("an engine open for reading reads, and refuses to write") { suite in
      let content = try suite.withEngine { try suite.fill($0) }
      try suite.withEngine("main", suite.options(creation: .openExisting, isReadOnly: true)) { engine in
        try expect(engine.isReadOnly, "isReadOnly")
        try expectEqual(Content(engine), content, "content")
        try expectError(.readOnly, from: "write") { try engine.write { (_: any WriteTransaction) in } }
        try expectError(.readOnly, .unsupported, from: "compact") { try engine.maintenance.compact() }
        try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
        try expectEqual(
          engine.maintenance.statistics().entries["documents"], 200, "entries in the statistics")
        try engine.maintenance.backup(to: suite.path("copy"))
        try expectError(.notFound, .invalidArgument, .readOnly, from: "createNew for reading") {
          _ = try suite.open(suite.path("new"), suite.options(creation: .createNew, isReadOnly: true))
        }
      }
      try suite.withEngine("copy") { try expectEqual(Content($0), content, "content of the copy") }
      try suite.withEngine { try expectEqual(Content($0), content, "content afterwards") }
    },

    Behaviour("an engine open for reading sees what another process commits", needs: [.sharing]) { suite in
      try suite.withEngine { try Counters.make($0) }
      try suite.withEngine("main", suite.options(creation: .openExisting, isReadOnly: true)) { engine in
        try expectEqual(Counters.count(engine), 0, "the counter")
        let snapshot = try engine.beginRead()
        defer { snapshot.end() }
        _ = try suite.runChild("increment", [suite.path("main"), "20"])
        try expectEqual(snapshot.text("counter", in: snapshot.known("left")), "0", "an older snapshot")
        try expectEqual(Counters.count(engine), 20, "the counter after another process wrote")
      }
    },

    Behaviour("files stay in their directory and go by the name of the first", needs: [.files]) {
      suite, engine in
      _ = try suite.fill(engine)
      for name in try FileManager.default.contentsOfDirectory(atPath: suite.directory) {
        try expect(name.hasPrefix("main.\(suite.subject.engine.fileExtension)"), "a file “\(name)”")
      }
    },

    Behaviour("a key for an engine that doesn't encrypt is refused") { suite in
      guard !suite.subject.engine.encrypts else { return }
      var options = suite.options()
      options.key = [UInt8](repeating: 1, count: 32)
      try expectError(.notEncrypted, from: "opening with a key") {
        _ = try suite.open(suite.path("main"), options)
      }
    },
  ]
}
