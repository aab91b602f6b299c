import TestSupport

/// Random operations on every engine at once, each step compared with `ReferenceModel`.
@Suite("Random operations agree with the rules") struct DifferentialTests {
  static let rounds = isLong ? 210 : 7

  private struct Undo: Error {}

  private enum Operation {
    case save(String, n: Int, extra: Int, base: String?, fails: Bool, asJSON: Bool)
    case delete(String, n: Int?, base: String?, fails: Bool)
    case purge(String)
    case apply(PulledRevision)
    case compact
  }

  @Test("documents, revisions, changes and storage", arguments: 0..<rounds)
  func operations(_ round: Int) throws {
    try withSeed(offset: UInt64(round)) { random in
      let depth = [1, 2, 3, 5, 20, 8, 40][round % 7]
      let keeps = round % 2 == 0 || Bool.random(using: &random)
      var model = ReferenceModel(depth: depth, keepsReplacedBodies: keeps)
      let directory = TemporaryDirectory()
      let databases = try someEngines.map { engine in
        var options = try options(engine)
        options.maximumTreeDepth = depth
        options.keepsReplacedBodies = keeps
        // Small blocks, so that histories are deep.
        options.revisionsPerBlock = [32, 1, 2, 3, 5, 1, 2][round % 7]
        // Records of documents with several leaves are written once a batch.
        options.wideTree = round % 3 == 0 ? 64 : 2
        return try Database.open("\(engine)", in: directory.path, options: options)
      }
      for step in 0..<(isShort ? 100 : 250) {
        if Int.random(in: 0..<12, using: &random) == 0 {
          let before = model
          let operations = (0..<Int.random(in: 1...6, using: &random)).map { _ in
            randomOperation(model, &random, inBatch: true)
          }
          let undoes = Bool.random(using: &random)
          // The operations were made up on the state before the batch, and run one after the other.
          let expected = operations.map { run($0, on: &model) }
          for database in databases {
            do {
              try database.inBatch {
                for (index, operation) in operations.enumerated() {
                  expect(run(operation, on: database), equals: expected[index], "\(step) \(operation)")
                }
                try compare(database, model, full: false)
                if undoes { throw Undo() }
              }
            } catch is Undo {}
          }
          if undoes { model = before }
          for database in databases { try compare(database, model, full: true) }
        } else {
          let operation = randomOperation(model, &random, inBatch: false)
          let expected = run(operation, on: &model)
          for database in databases {
            expect(
              run(operation, on: database), equals: expected, "\(database.name) step \(step): \(operation)")
            try compare(database, model, full: step % 10 == 9)
          }
        }
      }
      for database in databases {
        try expect(storageFaults(database), equals: [])
        try expect(database.checkIntegrity(), equals: [])
        let name = database.name
        try database.close()
        var options = try options(EngineName(rawValue: name))
        options.maximumTreeDepth = depth
        let again = try Database.open(name, in: directory.path, options: options)
        try compare(again, model, full: true)
        try again.close()
      }
    }
  }

  // MARK: Making operations up

  private func randomOperation(
    _ model: ReferenceModel, _ random: inout SeededGenerator, inBatch: Bool
  ) -> Operation {
    func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }
    let id = "doc\(below(6))"
    let entry = model.documents[id]
    let known = (entry?.nodes.keys).map { $0.sorted() } ?? []
    let leaves = known.filter { entry?.isLeaf($0) ?? false }
    var base: String?
    switch below(5) {
    case 0: base = known.randomElement(using: &random)
    case 1: base = leaves.randomElement(using: &random)
    case 2: base = entry?.current
    case 3 where below(4) == 0: base = "7-deadbeef"
    default: break
    }
    switch below(inBatch ? 38 : 40) {
    case 0..<12:
      return .save(
        id, n: below(4), extra: below(200), base: base, fails: below(3) == 0, asJSON: below(2) == 0)
    case 12..<17: return .delete(id, n: below(2) == 0 ? below(3) : nil, base: base, fails: below(3) == 0)
    case 17..<19: return .purge(id)
    case 19..<38:
      // On top of something known, or of nothing; through some unknown ones, with gaps now and then.
      var history: [String] = []
      let ancestor = below(6) == 0 ? nil : known.randomElement(using: &random)
      var generation = ancestor.map { Int($0.prefix { $0 != "-" }) ?? 0 } ?? below(6)
      if let ancestor {
        history = [ancestor]
        // Its own ancestors behind it, now and then with what isn't known any more.
        var next = entry?.nodes[ancestor]?.parent
        while let parent = next, below(3) > 0 {
          history.append(parent)
          next = entry?.nodes[parent]?.parent
        }
        // Now and then with older ones than the branch has here, known or not. A history is that of the branch as far as that goes.
        var older = Int(history[history.count - 1].prefix { $0 != "-" }) ?? 0
        if next == nil, below(3) == 0 {
          while older > 1, below(4) > 0 {
            older -= min(older - 1, below(5) == 0 ? 2 : 1)
            let others = known.filter { $0.hasPrefix("\(older)-") }
            history.append(
              others.randomElement(using: &random) ?? "\(older)-\(["00aa", "ff", "Text_1"][below(3)])")
          }
        }
      }
      for _ in 0..<(below(5) == 0 ? 0 : below(8) == 0 ? below(9) : 1 + below(2)) {
        generation += below(6) == 0 ? 2 + below(3) : 1
        let suffix = below(3) == 0 ? "Text_\(below(5))" : ["00aa", "ff", "0b0c0d", "a0", "9f"][below(5)]
        history.insert("\(generation)-\(suffix)", at: 0)
      }
      if below(40) == 0 { history.reverse() }
      let isDeleted = below(5) == 0
      return .apply(
        PulledRevision(
          id: id, history: history, isDeleted: isDeleted,
          body: ["n": .int(Int64(below(100))), "k\(below(300))": .bool(true)]))
    default: return .compact
    }
  }

  // MARK: Running them

  private func body(_ n: Int, _ extra: Int) -> (value: JSONValue, canonical: String) {
    let name = "extra\(extra)"
    return (["n": .int(Int64(n)), name: .string("x\(n)")], #"{"\#(name)":"x\#(n)","n":\#(n)}"#)
  }

  /// Runs it on the model; what came of it as text.
  private func run(_ operation: Operation, on model: inout ReferenceModel) -> String {
    do {
      switch operation {
      case .save(let id, let n, let extra, let base, let fails, _):
        let (value, canonical) = body(n, extra)
        return try model.save(id, value, canonical: canonical, base: base, fails: fails, deleting: false)
      case .delete(let id, let n, let base, let fails):
        let value: JSONValue = n.map { ["why": .int(Int64($0))] } ?? [:]
        return try model.save(
          id, value, canonical: n.map { #"{"why":\#($0)}"# } ?? "{}", base: base, fails: fails, deleting: true
        )
      case .purge(let id):
        try model.purge(id)
        return "purged"
      case .apply(let pulled):
        guard case .value(let value) = pulled.body else { return "no value" }
        return "\(try model.apply(pulled.id, pulled.history, deleted: pulled.isDeleted, value))"
      case .compact:
        model.compact()
        return "compacted"
      }
    } catch { return (error as? ReferenceModel.Refused)?.code.rawValue ?? "\(error)" }
  }

  private func run(_ operation: Operation, on database: Database) -> String {
    do {
      switch operation {
      case .save(let id, let n, let extra, let base, let fails, let asJSON):
        let (value, canonical) = body(n, extra)
        let saved = try database.save(
          id, asJSON ? DocumentBody(json: canonical) : .value(value),
          basedOn: base.flatMap { RevisionID($0) },
          onConflict: fails ? .fail : .lastWriteWins)
        return saved.revisionID.description
      case .delete(let id, let n, let base, let fails):
        return try database.delete(
          id, basedOn: base.flatMap { RevisionID($0) }, keeping: n.map { ["why": .int(Int64($0))] } ?? [:],
          onConflict: fails ? .fail : .lastWriteWins
        ).revisionID.description
      case .purge(let id):
        try database.purge(id)
        return "purged"
      case .apply(let pulled): return "\(try database.apply(pulled))"
      case .compact:
        try database.compact()
        return "compacted"
      }
    } catch { return (error as? DocumentError)?.code.rawValue ?? "\(error)" }
  }

  // MARK: Comparing

  private func compare(_ database: Database, _ model: ReferenceModel, full: Bool) throws {
    let live = model.documents.filter { !$0.value.isDeleted }
    try expect(database.documentCount, equals: live.count)
    try expect(database.tombstoneCount, equals: model.documents.count - live.count)
    try expect(database.lastSequence, equals: UInt64(model.lastSequence))
    for number in 0..<6 {
      let id = "doc\(number)"
      guard let entry = model.documents[id] else {
        try expect(database.document(id, includeDeleted: true) == nil)
        try expect(database.revisions(of: id) == nil)
        continue
      }
      let document = try #require(try database.document(id, includeDeleted: true))
      expect(document.isDeleted, equals: entry.isDeleted)
      expect(document.isConflicted, equals: entry.isConflicted)
      expect(document.sequence, equals: UInt64(entry.sequence))
      expect(document.revisionID.description, equals: entry.current)
      try expect((database.document(id) == nil), equals: entry.isDeleted)
      try expect(document.value(), equals: entry.nodes[entry.current]?.body)
      guard full else { continue }
      let revisions = try #require(try database.revisions(of: id))
      let order = entry.ordered
      try #require(revisions.map(\.id.description) == order, "\(database.name) \(id)")
      for (index, revision) in revisions.enumerated() {
        let node = try #require(entry.nodes[order[index]])
        expect(revision.parent?.description, equals: node.parent)
        expect(revision.isDeleted, equals: node.isDeleted)
        expect(revision.isLeaf, equals: entry.isLeaf(order[index]))
        expect(revision.isCurrent, equals: (index == 0))
        expect(revision.sequence, equals: UInt64(node.sequence))
        expect(revision.body, equals: node.body, "\(database.name) \(id) \(order[index])")
      }
    }
    guard full else { return }
    let expected = model.documents.map { id, entry in
      "\(entry.sequence) \(id) \(entry.isDeleted) \(entry.isConflicted)"
    }
    let found = try database.changes().map {
      "\($0.sequence) \($0.documentID) \($0.isDeleted) \($0.isConflicted)"
    }
    expect(found.sorted(), equals: expected.sorted())
    let sequences = try database.changes().map(\.sequence)
    expect(sequences, equals: sequences.sorted())
    let scanned = try database.read { snapshot in
      var ids: [String] = []
      try snapshot.forEachDocument(order: .ascending) { view in
        ids.append(view.id)
        return true
      }
      return ids
    }
    expect(scanned, equals: live.keys.sorted())
  }
}
