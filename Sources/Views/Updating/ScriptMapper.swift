import Bytes
import Documents
import Fleece
import Logs
import Scripts
import Storage

/// Maps documents with the scripts of a design document. While one batch of documents is being mapped, the next one is
/// prepared.
///
/// A document that a function throws on has no rows in that view. A script that is stopped ends the update.
final class ScriptMapper: GroupMapper {
  /// Documents that were handed over together.
  private struct Batch {
    let batch = ScriptBatch()
    var documents: [(id: [UInt8], sequence: UInt64)] = []
  }

  private let members: [GroupMember]
  /// The place of each member's view in the design document.
  private let views: [Int]
  private let encoders: [ViewKeyEncoder]
  private let context: any ScriptContext
  private let options: MapOptions
  /// The path that log entries name.
  private let path: String
  private let report: (ViewFault) -> Void
  private var rows = MappedRows()
  private var wanted: [Int] = []
  private var sharedKeys = SharedKeys.empty
  private var filling = Batch()
  private var running:
    (mapping: any ScriptMapping, documents: [(id: [UInt8], sequence: UInt64)], batch: ScriptBatch)?
  private var json: [UInt8] = []

  init(
    _ members: [GroupMember], views: [Int], _ encoders: [ViewKeyEncoder], _ context: any ScriptContext,
    _ options: MapOptions, path: String, report: @escaping (ViewFault) -> Void
  ) {
    self.path = path
    self.members = members
    self.views = views
    self.encoders = encoders
    self.context = context
    self.options = options
    self.report = report
  }

  var waitingBytes: Int { (filling.documents.count + (running?.documents.count ?? 0)) * 1024 }

  func begin(_ rows: MappedRows, _ sharedKeys: SharedKeys, wanted: [Int]) {
    self.rows = rows
    self.sharedKeys = sharedKeys
    self.wanted = wanted
    filling = Batch()
    running = nil
  }

  func addRemoved(_ id: UnsafeRawBufferPointer) {
    // The documents that wait come later: their order doesn't count in an update, and a build has no removed ones.
    rows.begin(id, sequence: 0)
    rows.end()
  }

  func map(_ document: DocumentView) throws {
    let sequence = try document.currentSequence()
    json.removeAll(keepingCapacity: true)
    try MapInput.writeJSON(of: document, sharedKeys: sharedKeys, options, into: &json)
    filling.batch.append(id: document.idBytes, json: json.span.bytes)
    filling.documents.append(([UInt8](copying: document.idBytes), sequence))
    if filling.batch.isFull { try send() }
  }

  func finish() throws {
    if !filling.documents.isEmpty { try send() }
    try take()
  }

  /// Hands over the documents that wait, and takes the rows of those before.
  private func send() throws {
    let next = filling
    filling = Batch()
    let mapping = try failing { try context.beginMapping(next.batch, views: wanted.map { views[$0] }) }
    try take()
    running = (mapping, next.documents, next.batch)
  }

  private func take() throws {
    guard let running else { return }
    self.running = nil
    let answer = try failing { try running.mapping.finish() }
    guard let first = wanted.first else { return }
    let emitter = RowEmitter(rows, encoders[first], sharedKeys)
    for (index, document) in running.documents.enumerated() {
      document.id.withUnsafeBytes { rows.begin($0, sequence: document.sequence) }
      for (place, member) in wanted.enumerated() {
        let name = members[member].name
        func fail(_ message: String) {
          report(
            ViewFault(view: name, documentID: String(decoding: document.id, as: UTF8.self), message: message))
        }
        if Log.isWritten(.debug, .index) { log(answer, index, place, name, document.id) }
        if let exception = answer.exception(document: index, view: place) {
          fail(exception)
          continue
        }
        emitter.begin(view: member, encoders[member])
        try answer.forEachRow(document: index, view: place) { key, value, isDocument in
          key.withUnsafeBytes { key in
            value.withUnsafeBytes {
              emitter.emit(keyJSON: key, isDocument ? .document : .json, valueJSON: $0)
            }
          }
        }
        if let failure = emitter.endDocument() { fail(failure) }
      }
      rows.end()
    }
  }

  /// Writes what a function has logged, which may be content of documents.
  private func log(_ answer: ScriptRows, _ document: Int, _ place: Int, _ view: String, _ id: [UInt8]) {
    for line in answer.log(document: document, view: place) {
      Log.write(
        .debug, .index, path, "view '\(view)', document '\(String(decoding: id, as: UTF8.self))': \(line)")
    }
  }

  private func failing<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as ScriptError {
      throw ViewError(.scriptFailed, error.message, view: members.first?.name, documentID: error.documentID)
    }
  }
}
