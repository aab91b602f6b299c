import Foundation
import Simulation
import TestSupport

/// What a database has to show: its model, and what a machine's steps change besides.
struct MachineState {
  var model = Model()
  var engine: String
  /// Engines that it may still have, because nobody knows whether a conversion was done: it shows nothing.
  var enginesBefore: Set<String> = []
  /// For each document the current revision before its last change, if there was one.
  var stale: [String: String] = [:]
  var shown: Shown { model.shown }

  /// What a step asks for now, one after the other. Empty if it makes no sense.
  func requests(_ step: MachineStep, _ prebuilt: [Prebuilt]) -> [MachineRequest] {
    switch step {
    case .failing(_, let step): return requests(step, prebuilt)
    case .changeKey(let number): return [.changeKey(number)]
    case .replace(let number):
      let prebuilt = prebuilt[number % prebuilt.count]
      return [.close, .replace(source: prebuilt.path, engine: prebuilt.engine), .open]
    case .step(.reopen): return [.close, .open]
    case .step(.convert(let engine)): return [.close, .convert(engine: engine), .open]
    // One commit each.
    case .step(.incrementTogether(let id, let times)):
      return Array(repeating: .operation(.increment(id: id, times: 1)), count: times)
    case .step(let step): return operation(step).map { [.operation($0)] } ?? []
    }
  }

  private func operation(_ step: Step) -> DatabaseOperation? {
    switch step {
    case .one(_, let operation): return operation
    case .saveOnCurrent(_, let id, let isStale, let content, _):
      let revision = isStale ? stale[id] : model.current(id)?.revision
      return .saveOnTop(id: id, revision: revision, content)
    case .applyForeign(_, let id, let suffix, let onCurrent, let isDeleted, let content, _):
      let parent = onCurrent ? model.current(id)?.revision : nil
      let history = ["\((parent.map(Model.generation) ?? 0) + 1)-\(suffix)"] + [parent].compactMap { $0 }
      return .apply(id: id, history: history, isDeleted: isDeleted, content)
    case .resolve(_, let id):
      guard let current = model.current(id), !current.isDeleted else { return nil }
      return .resolve(id: id, revision: current.revision)
    case .saveTogether(let batches): return batches.first.map { .saveAll($0) }
    case .kill(_, _, let id, let content): return .save(id: id, content)
    case .reopen, .convert, .incrementTogether: return nil
    }
  }

  /// Follows a request that was answered so. `after` asks for a document.
  mutating func take(
    _ request: MachineRequest, _ answer: Answer, _ prebuilt: [Prebuilt], after: (String) throws -> Answer
  ) throws {
    switch request {
    case .operation(.increment(let id, let times)):
      try model.takeIncrements(id, by: times, [answer], after: try after(id))
    case .operation(let operation):
      let before = operation.changedDocument.flatMap { id in model.current(id).map { (id, $0.revision) } }
      try model.take(operation, answer)
      if let (id, revision) = before, model.current(id)?.revision != revision { stale[id] = revision }
    case .changeKey where !possibleEngines.allSatisfy(Self.encrypts):
      let mayTake = possibleEngines.contains(where: Self.encrypts)
      guard !(answer == .done && !mayTake) else { throw Mismatch("a plain database took a key") }
    default:
      guard answer == .done else { throw Mismatch("\(request) is answered with \(answer)") }
      follow(request, prebuilt)
    }
  }

  private var possibleEngines: Set<String> { enginesBefore.union([engine]) }

  private static func encrypts(_ engine: String) -> Bool { ["sqlcipher", "lmdb-encrypted"].contains(engine) }

  private mutating func follow(_ request: MachineRequest, _ prebuilt: [Prebuilt]) {
    switch request {
    case .convert(let name):
      engine = name
      enginesBefore = []
    case .replace(let source, _):
      guard let prebuilt = prebuilt.first(where: { $0.path == source }) else { return }
      model = prebuilt.model
      engine = prebuilt.engine
      enginesBefore = []
      stale = [:]
    default: break
    }
  }

  /// The state after a request that may have been done, as what is shown tells; nil if that is neither the state
  /// before it nor after it.
  func settled(_ request: MachineRequest, _ shown: Shown, _ prebuilt: [Prebuilt]) -> MachineState? {
    if self.shown == shown {
      // A conversion shows nothing.
      if case .convert = request, var converted = after(request, shown, prebuilt) {
        converted.enginesBefore = possibleEngines
        return converted
      }
      return self
    }
    return after(request, shown, prebuilt)
  }

  private func after(_ request: MachineRequest, _ shown: Shown, _ prebuilt: [Prebuilt]) -> MachineState? {
    var state = self
    if case .operation(let operation) = request {
      guard let model = model.after(operation, shown) else { return nil }
      state.model = model
    } else {
      state.follow(request, prebuilt)
    }
    return state.shown == shown ? state : nil
  }
}

/// A database that another one can be replaced with.
struct Prebuilt {
  let path: String
  let engine: String
  let model: Model

  /// Makes some, with blobs and an index, below a folder.
  static func make(in folder: String, encrypted: Bool) throws -> [Prebuilt] {
    try ["sqlite", encrypted ? "lmdb-encrypted" : "lmdb"].enumerated().map { number, engine in
      let inner = folder + "/prebuilt\(number)"
      guard mkdir(inner, 0o755) == 0 else { throw Mismatch("can't make \(inner)") }
      let database = MachineDatabase(folder: inner, engine: engine, durability: .none)
      var state = MachineState(engine: engine)
      var operations: [DatabaseOperation] = (0..<4).map {
        .save(
          id: "doc\($0)",
          Content(
            number: 7 * $0, words: ["wort\($0)x"], blob: "prebuilt \(number) \($0)", padding: 3_000 * $0))
      }
      operations.append(.createFullTextIndex)
      for request in [.open] + operations.map({ MachineRequest.operation($0) }) + [.close] {
        try state.take(request, database.perform(request), []) { _ in .done }
      }
      return Prebuilt(path: inner + "/test.touchstone", engine: engine, model: state.model)
    }
  }
}
