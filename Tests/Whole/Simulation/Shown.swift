import Foundation
import Touchstone

/// `Operation` for modules that import Foundation, which has one too.
package typealias DatabaseOperation = Operation

/// All that a simulated database shows, in one value: of a database, or of a model.
package struct Shown: Codable, Equatable, Sendable {
  package struct Document: Codable, Equatable, Sendable {
    let current: Answer.Current
    /// By revision.
    let leaves: [Leaf]
    let expirationDay: Int?
  }

  package let documents: [String: Document]
  /// The IDs in the order of their last changes.
  let changes: [String]
  let locals: [String: Int]
  let indexes: [String]

  /// Where it differs from what is right, for people.
  package func difference(from right: Shown) -> String {
    var found: [String] = []
    for id in Set(documents.keys).union(right.documents.keys).sorted()
    where documents[id] != right.documents[id] {
      let (left, right) = (documents[id], right.documents[id])
      found.append(
        "\(id) is \(left.map { "\($0)" } ?? "absent"), not \(right.map { "\($0)" } ?? "absent")")
    }
    if changes != right.changes { found.append("changes \(changes), not \(right.changes)") }
    if locals != right.locals { found.append("local documents \(locals), not \(right.locals)") }
    if indexes != right.indexes { found.append("indexes \(indexes), not \(right.indexes)") }
    return found.joined(separator: "\n    ")
  }
}

extension Model {
  package var shown: Shown {
    Shown(
      documents: documents.reduce(into: [:]) { shown, entry in
        guard let current = answer(entry.key) else { return }
        shown[entry.key] = Shown.Document(
          current: current, leaves: entry.value.leaves.sorted { $0.revision < $1.revision },
          expirationDay: entry.value.expirationDay)
      },
      changes: documents.sorted { $0.value.sequence < $1.value.sequence }.map(\.key),
      locals: locals, indexes: indexes.sorted())
  }

  /// The model after an operation that may have been done, as what is shown tells; nil if no right database shows that
  /// after it.
  package func after(_ operation: Operation, _ shown: Shown) -> Model? {
    var model = self
    if case .increment(let id, let times) = operation {
      guard let document = shown.documents[id] else { return nil }
      for times in 1...max(1, times) {
        model = self
        try? model.takeIncrements(id, by: times, [.done], after: .document(document.current))
        if model.shown == shown { return model }
      }
      return nil
    }
    do { try model.take(operation, answer(to: operation, shown)) } catch { return nil }
    return model.shown == shown ? model : nil
  }

  /// What a database answers that did it, and shows this afterwards.
  private func answer(to operation: Operation, _ shown: Shown) -> Answer {
    func newLeaf(_ id: String) -> String? {
      shown.documents[id]?.leaves.map(\.revision).first { revision in
        !(documents[id]?.leaves.contains { $0.revision == revision } ?? false)
      }
    }
    func saved(_ ids: [String]) -> Answer {
      .saved(
        ids.enumerated().map { place, id in
          Answer.Saved(
            id: id, revision: newLeaf(id) ?? shown.documents[id]?.current.revision ?? "",
            sequence: lastSequence + 1 + UInt64(place))
        })
    }
    switch operation {
    case .save(let id, _), .saveOnTop(let id, _, _), .delete(let id): return saved([id])
    case .saveAll(let contents): return saved(contents.keys.sorted())
    case .insert(let id, _, _): return saved([id])
    case .updateWhere(let from, let through, _), .deleteWhere(let from, let through):
      let changed = Set(ids(from, through))
      return saved(shown.changes.filter(changed.contains))
    case .tryDeleteWhere(let from, let through): return .names(ids(from, through))
    case .apply(let id, let history, _, _):
      return .count(documents[id]?.leaves.contains { $0.revision == history[0] } ?? false ? 0 : 1)
    case .resolve(let id, _): return .leaves(shown.documents[id]?.leaves ?? [])
    case .purgeExpired(let day):
      return .count(documents.values.count { $0.expirationDay.map { $0 <= day } ?? false })
    case .createIndex: return .count(indexes.contains(SimulatedDatabase.valueIndex) ? 0 : 1)
    case .createFullTextIndex: return .count(indexes.contains(SimulatedDatabase.textIndex) ? 0 : 1)
    case .createFindIndex: return hasFindIndex ? .count(0) : saved([SimulatedDatabase.findIndex])
    case .deleteIndex(let name): return .count(indexes.contains(name) ? 1 : 0)
    case .overHTTP(let operation): return answer(to: operation, shown)
    default: return .done
    }
  }
}

extension SimulatedDatabase {
  /// What it shows. Throws a `Mismatch` if parts of it contradict each other, and what the database throws.
  package func shown() throws -> Shown {
    let changes = try database.changes().map(\.documentID)
    var documents: [String: Shown.Document] = [:]
    for id in changes {
      guard let document = try database.document(id, includeDeleted: true) else {
        throw Mismatch("\(id) is among the changes, but there is no such document")
      }
      documents[id] = Shown.Document(
        current: try current(document),
        leaves: try leaves(id).sorted { $0.revision < $1.revision },
        expirationDay: try database.expiration(of: id).map {
          Int(($0.timeIntervalSince(Self.firstDay) / 86_400).rounded())
        })
    }
    var locals: [String: Int] = [:]
    for number in 0..<3 {
      locals["local\(number)"] = try database.localDocument("local\(number)")
        .flatMap { $0.body["number"].int.map { Int($0) } }
    }
    let shown = Shown(
      documents: documents, changes: changes, locals: locals,
      indexes: try database.indexes.map(\.name).sorted())
    try compareIndexes(shown)
    return shown
  }

  /// Asks the indexes for what the documents hold.
  private func compareIndexes(_ shown: Shown) throws {
    let live = shown.documents.compactMap { id, document in document.current.content.map { (id, $0) } }
    for (from, through) in [(0, 9), (10, 24), (25, 1_000)] {
      let right = live.filter { from...through ~= $0.1.number }.map(\.0).sorted()
      for question in [
        Operation.query(from: from, through: through), .viewRows(from: from, through: through),
        .find(from: from, through: through),
      ] {
        let found = answer(question)
        guard found == .names(right) else { throw Mismatch("\(question): \(found), not \(right)") }
      }
    }
    guard shown.indexes.contains(Self.textIndex) else { return }
    for word in Set(live.flatMap(\.1.words)).union(["wort0x"]) {
      let right = live.filter { $0.1.words.contains(word) }.map(\.0).sorted()
      let found = answer(.match(word))
      guard found == .names(right) else { throw Mismatch("\(word): \(found), not \(right)") }
    }
  }
}
