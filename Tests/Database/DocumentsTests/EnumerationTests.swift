import TestSupport

@Suite("All documents, and local ones") struct EnumerationTests {
  @Test("every choice gives what a filter over everything gives", arguments: someEngines)
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
        func less(_ a: String, _ b: String) -> Bool { Array(a.utf8).lexicographicallyPrecedes(Array(b.utf8)) }
        all.sort { less($0.id, $1.id) }
        let bySequence = try database.changes(since: 0, limit: .max).map(\.documentID)
        expect(bySequence != all.map(\.id) && bySequence.count == all.count)
        for _ in 0..<300 {
          var choice = AllDocuments()
          choice.mode = AllDocuments.Mode.allCases.randomElement(using: &random) ?? .live
          choice.isDescending = .random(using: &random)
          choice.includesStart = .random(using: &random)
          choice.includesEnd = .random(using: &random)
          let bounds = all.map(\.id) + ["", "a", "zz", "b/5"]
          if Bool.random(using: &random) { choice.startID = bounds.randomElement(using: &random) }
          if Bool.random(using: &random) { choice.endID = bounds.randomElement(using: &random) }
          let prefixes = ["", "a", "a1", "b", "b/", "ā", "ā2", "none"]
          if Bool.random(using: &random) { choice.prefix = prefixes.randomElement(using: &random) }
          if Int.random(in: 0..<3, using: &random) == 0 { choice.skip = .random(in: 0..<30, using: &random) }
          if Int.random(in: 0..<3, using: &random) == 0 { choice.limit = .random(in: 0..<30, using: &random) }
          let kinds = all.filter {
            switch choice.mode {
            case .live, .showConflicts: !$0.deleted
            case .includingDeleted: true
            case .onlyConflicts: $0.conflicted
            }
          }.map(\.id)
          choice.order = AllDocuments.Order.allCases.randomElement(using: &random) ?? .id
          let ordered = choice.order == .id ? kinds : bySequence.filter { kinds.contains($0) }
          var expected = choice.isDescending ? ordered.reversed() : ordered
          if Int.random(in: 0..<4, using: &random) == 0 {
            let asked = all.map(\.id) + ["none", "_bad", ""]
            let keys = (0..<10).compactMap { _ in asked.randomElement(using: &random) }
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
              return Array(id.utf8).starts(with: Array((choice.prefix ?? "").utf8))
            }
          }
          expected = Array(expected.dropFirst(choice.skip).prefix(choice.limit))
          let found = try database.documents(choice)
          expect(found.map(\.id), equals: expected, "\(choice)")
          // Rows have the same documents, and one for each key.
          let rows = try database.rows(choice)
          if let keys = choice.keys {
            let asked = choice.isDescending ? keys.reversed() : keys
            expect(rows.map(\.key), equals: Array(asked.dropFirst(choice.skip).prefix(choice.limit)))
          } else {
            expect(rows.map(\.key), equals: expected)
          }
          for row in rows {
            let known = all.first { $0.id == row.key }
            expect(row.documentID == known?.id && row.isDeleted == known?.deleted ?? false)
            expect((row.revisionID == nil), equals: (known == nil))
            expect(row.document?.id, equals: (kinds.contains(row.key) ? row.key : nil))
            expect((row.error == nil), equals: !["_bad", ""].contains(row.key))
            let shows = choice.mode == .showConflicts || choice.mode == .onlyConflicts
            let revisions = row.conflictingRevisions.map(\.id.description)
            expect(revisions, equals: (shows && known?.conflicted == true ? ["1-bb", "1-aa"] : []))
          }
          expect(
            found.allSatisfy { document in
              all.contains { $0.id == document.id && $0.deleted == document.isDeleted }
            })
        }
      }
    }
  }

  @Test("there is a row for each key, and one bad ID spoils one row", arguments: someEngines)
  func rows(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.save("a", ["n": 1])
      let deleted = try database.delete("gone", basedOn: database.save("gone", ["n": 2]).revisionID)
      for history in [["2-bb", "1-aa"], ["2-cc", "1-aa"], ["1-aa"]] {
        try database.apply(PulledRevision(id: "torn", history: history, body: ["h": .string(history[0])]))
      }
      let keys = ["torn", "none", "a", "_bad", "gone", "a"]
      var rows = try database.rows(AllDocuments(keys: keys))
      expect(rows.map(\.key), equals: keys)
      expect(rows.map(\.documentID), equals: ["torn", nil, "a", nil, "gone", "a"])
      expect(rows.map { $0.document?.id }, equals: ["torn", nil, "a", nil, nil, "a"])
      expect(rows.map(\.isDeleted), equals: [false, false, false, false, true, false])
      expect(rows.map { $0.error?.code }, equals: [nil, nil, nil, .invalidDocumentID, nil, nil])
      expect(rows[4].revisionID, equals: deleted.revisionID)
      expect(rows.allSatisfy { $0.conflictingRevisions.isEmpty })
      rows = try database.rows(AllDocuments(.includingDeleted, keys: ["gone"]))
      expect(rows[0].document?.isDeleted, equals: true)
      // Skip and limit count rows.
      rows = try database.rows(AllDocuments(keys: keys, isDescending: true, skip: 1, limit: 3))
      expect(rows.map(\.key), equals: ["gone", "_bad", "a"])
      rows = try database.rows(AllDocuments(.showConflicts))
      expect(rows.map(\.key), equals: ["a", "torn"])
      expect(rows[0].conflictingRevisions.isEmpty)
      expect(rows[1].conflictingRevisions.map(\.id.description), equals: ["2-cc", "2-bb"])
      expect(rows[1].conflictingRevisions.map(\.body), equals: [["h": "2-cc"], ["h": "2-bb"]])
      expect(rows[1].document?["h"].string, equals: "2-cc")
      rows = try database.rows(AllDocuments(.onlyConflicts, isDescending: true))
      expect(rows.map(\.key), equals: ["torn"])
      // In a batch, they show its writes.
      try database.inBatch {
        try database.save("b", [:])
        try expect(database.rows(AllDocuments(prefix: "b")).map(\.key), equals: ["b"])
        let refused = try documentCode {
          try database.enumerateRows { _ in
            try database.save("x", [:])
            return true
          }
        }
        expect(refused, equals: .writeInScan)
      }
      // Enumerations leave out what can't be an ID.
      try expect(database.documents(AllDocuments(keys: keys)).map(\.id), equals: ["torn", "a", "a"])
    }
  }

  @Test("enumerating ends when it is told, and what is seen is one snapshot", arguments: someEngines)
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
      expect(ids, equals: ["d0", "d1", "d2", "d3 deleted", "d4", "d5"])
      try database.inBatch {
        let refused = try documentCode {
          try database.enumerate { _ in try database.save("x", [:]).generation > 0 }
        }
        expect(refused, equals: .writeInScan)
      }
    }
  }

  @Test("a local document's name may begin with an underscore", arguments: someEngines)
  func localNamesWithUnderscores(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      // One in 64 of the checkpoints of PouchDB has such a name.
      let names = ["_Zl0Bv.uDKk2xkDw==", "_design/", "_local/a", "__"]
      for name in names {
        try database.saveLocalDocument(name, ["n": 1])
        try expect(database.saveLocalDocument(name, ["n": 2], basedOn: 1).revisionID, equals: "2-local")
        try expect(database.localDocument(name)?.body, equals: ["n": 2])
      }
      try expect(database.localDocumentIDs(), equals: ["_Zl0Bv.uDKk2xkDw==", "__", "_design/", "_local/a"])
      try database.deleteLocalDocument(names[0], basedOn: 2)
      try expect(database.localDocument(names[0]) == nil)
      try expect(documentCode { try database.save(names[0], [:]) }, equals: .invalidDocumentID)
      for name in ["", "a\u{1}", String(repeating: "n", count: 241)] {
        try expect(documentCode { try database.saveLocalDocument(name, [:]) }, equals: .invalidDocumentID)
      }
      try expect(storageFaults(database), equals: [])
    }
  }

  @Test("local documents are by themselves, and go by n-local", arguments: someEngines)
  func localDocuments(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try expect(database.localDocument("checkpoint") == nil)
      try expect(database.localDocumentIDs(), equals: [])
      let first = try database.saveLocalDocument("checkpoint", ["seq": 1, "nested": ["a": [1, .null, 2.5]]])
      expect(first.revisionID, equals: "1-local")
      try expect(database.localDocument("checkpoint"), equals: first)
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
      expect(
        refused,
        equals: [
          .conflict, .conflict, .conflict, .invalidDocumentID, .invalidBody, .invalidBody, .notFound,
          .conflict,
        ])
      try expect(
        database.saveLocalDocument("checkpoint", ["seq": 2], basedOn: 1).revisionID, equals: "2-local")
      try expect(
        database.saveLocalDocument("checkpoint", [:], onConflict: .lastWriteWins).generation, equals: 3)
      try expect(database.saveLocalDocument("a", ["_any": 1]).generation, equals: 1)
      try expect(database.localDocumentIDs(), equals: ["a", "checkpoint"])
      // They are in nothing else.
      try expect(database.lastSequence == 0 && database.documentCount == 0 && database.changes().isEmpty)
      try expect(database.document("checkpoint") == nil)
      try expect(storageFaults(database), equals: [])
      try database.deleteLocalDocument("checkpoint", basedOn: 3)
      try expect(database.localDocument("checkpoint") == nil)
      try expect(database.saveLocalDocument("checkpoint", [:]).generation, equals: 1)
      try database.inUndoneBatch {
        try database.saveLocalDocument("a", ["n": 2], basedOn: 1)
        try expect(database.localDocument("a")?.generation, equals: 2)
      }
      try expect(database.localDocument("a")?.body, equals: ["_any": 1])
    }
  }
}
