import TestSupport
import Testing
import Touchstone

@Suite("All documents, and local ones") struct EnumerationTests {
  @Test("every choice gives what a filter over everything gives", arguments: allEngines)
  func choices(_ engine: EngineName) throws {
    try withSeed { random in
      try withDatabase(engine) { database in
        var all: [(id: String, deleted: Bool, conflicted: Bool)] = []
        try database.inBatch {
          for number in 0..<120 {
            let id = ["a", "b", "ā", "b/"][number % 4] + "\(number * 7 % 120)"
            try database.apply(PulledRevision(id: id, history: ["1-aa"], body: ["n": 1]))
            let kind = Int.random(in: 0..<4, using: &random)
            if kind == 0 { try database.delete(id) }
            if kind == 1 { try database.apply(PulledRevision(id: id, history: ["1-bb"], body: ["n": 2])) }
            all.append((id, kind == 0, kind == 1))
          }
        }
        all.sort { Array($0.id.utf8).lexicographicallyPrecedes(Array($1.id.utf8)) }
        func less(_ a: String, _ b: String) -> Bool { Array(a.utf8).lexicographicallyPrecedes(Array(b.utf8)) }
        for _ in 0..<300 {
          var choice = AllDocuments()
          choice.mode = AllDocuments.Mode.allCases.randomElement(using: &random) ?? .live
          choice.isDescending = .random(using: &random)
          choice.includesStart = .random(using: &random)
          choice.includesEnd = .random(using: &random)
          let bounds = all.map(\.id) + ["", "a", "zz", "b/5"]
          if Bool.random(using: &random) { choice.startID = bounds.randomElement(using: &random) }
          if Bool.random(using: &random) { choice.endID = bounds.randomElement(using: &random) }
          if Int.random(in: 0..<3, using: &random) == 0 { choice.skip = .random(in: 0..<30, using: &random) }
          if Int.random(in: 0..<3, using: &random) == 0 { choice.limit = .random(in: 0..<30, using: &random) }
          let kinds = all.filter {
            switch choice.mode {
            case .live: !$0.deleted
            case .includingDeleted: true
            case .onlyConflicts: $0.conflicted
            }
          }.map(\.id)
          var expected = choice.isDescending ? kinds.reversed() : kinds
          if Int.random(in: 0..<4, using: &random) == 0 {
            let keys = (0..<10).compactMap { _ in (all.map(\.id) + ["none"]).randomElement(using: &random) }
            choice.keys = keys
            expected = (choice.isDescending ? keys.reversed() : keys).filter { kinds.contains($0) }
          } else {
            let (low, high) =
              choice.isDescending ? (choice.endID, choice.startID) : (choice.startID, choice.endID)
            let (hasLow, hasHigh) =
              choice.isDescending
              ? (choice.includesEnd, choice.includesStart) : (choice.includesStart, choice.includesEnd)
            expected = expected.filter { id in
              if let low, less(id, low) || (!hasLow && id == low) { return false }
              if let high, less(high, id) || (!hasHigh && id == high) { return false }
              return true
            }
          }
          expected = Array(expected.dropFirst(choice.skip).prefix(choice.limit))
          let found = try database.documents(choice)
          #expect(found.map(\.id) == expected, "\(choice)")
          #expect(
            found.allSatisfy { document in
              all.contains { $0.id == document.id && $0.deleted == document.isDeleted }
            })
        }
      }
    }
  }

  @Test("enumerating ends when it is told, and what is seen is one snapshot", arguments: allEngines)
  func streaming(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      for number in 0..<10 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
      try database.delete("d3")
      var ids: [String] = []
      try database.enumerate(AllDocuments(.includingDeleted)) { view in
        // Beside the enumeration, on another snapshot.
        if ids.isEmpty { try database.save("d2x", [:]) }
        ids.append(view.id + (view.isDeleted ? " deleted" : ""))
        return ids.count < 6
      }
      #expect(ids == ["d0", "d1", "d2", "d3 deleted", "d4", "d5"])
      try database.inBatch {
        let refused = [
          try documentCode {
            try database.enumerate { _ in
              try database.save("x", [:]); return true
            }
          }
        ]
        #expect(refused == [.writeInScan])
      }
    }
  }

  @Test("local documents are by themselves, and go by n-local", arguments: allEngines)
  func localDocuments(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      #expect(try database.localDocument("checkpoint") == nil)
      #expect(try database.localDocumentIDs() == [])
      let first = try database.saveLocalDocument("checkpoint", ["seq": 1, "nested": ["a": [1, .null, 2.5]]])
      #expect(first.revisionID == "1-local")
      #expect(try database.localDocument("checkpoint") == first)
      let refused = [
        try documentCode { try database.saveLocalDocument("checkpoint", ["seq": 2]) },
        try documentCode { try database.saveLocalDocument("checkpoint", ["seq": 2], basedOn: 7) },
        try documentCode { try database.saveLocalDocument("other", ["seq": 2], basedOn: 1) },
        try documentCode { try database.saveLocalDocument("", [:]) },
        try documentCode { try database.saveLocalDocument("x", [1]) },
        try documentCode { try database.saveLocalDocument("x", ["d": .double(.nan)]) },
        try documentCode { try database.deleteLocalDocument("none") },
        try documentCode { try database.deleteLocalDocument("checkpoint", basedOn: 2) },
      ]
      #expect(
        refused == [
          .conflict, .conflict, .conflict, .invalidDocumentID, .invalidBody, .invalidBody, .notFound,
          .conflict,
        ])
      #expect(try database.saveLocalDocument("checkpoint", ["seq": 2], basedOn: 1).revisionID == "2-local")
      #expect(try database.saveLocalDocument("checkpoint", [:], onConflict: .lastWriteWins).generation == 3)
      #expect(try database.saveLocalDocument("a", ["_any": 1]).generation == 1)
      #expect(try database.localDocumentIDs() == ["a", "checkpoint"])
      // They are in nothing else.
      #expect(try database.lastSequence == 0 && database.documentCount == 0 && database.changes().isEmpty)
      #expect(try database.document("checkpoint") == nil)
      #expect(try storageFaults(database) == [])
      try database.deleteLocalDocument("checkpoint", basedOn: 3)
      #expect(try database.localDocument("checkpoint") == nil)
      #expect(try database.saveLocalDocument("checkpoint", [:]).generation == 1)
      struct Undo: Error {}
      #expect(throws: Undo.self) {
        try database.inBatch {
          try database.saveLocalDocument("a", ["n": 2], basedOn: 1)
          #expect(try database.localDocument("a")?.generation == 2)
          throw Undo()
        }
      }
      #expect(try database.localDocument("a")?.body == ["_any": 1])
    }
  }
}
