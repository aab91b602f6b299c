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
///
/// Rows come in parts of a batch (`ScriptMapping.next`). So neither their memory nor the time until the next check depends on how many
/// documents a batch has.
final class ScriptMapper: GroupMapper {
  private struct Document {
    let id: [UInt8]
    let sequence: UInt64
    /// Whether the function sees more than the revision has, such as conflicts: then a row whose value is the document has to
    /// store it.
    let hasMore: Bool
  }

  /// Documents that were handed over together.
  private struct Batch {
    let batch = ScriptBatch()
    var documents: [Document] = []
  }

  private let members: [GroupMember]
  /// The place of each member's view in the design document.
  private let views: [Int]
  private let encoders: [ViewKeyEncoder]
  private let context: any ScriptContext
  private let options: MapOptions
  /// The path that log entries name.
  private let path: String
  /// Throws when nobody wants the rows any more. Called after each part.
  private let checkWanted: () throws -> Void
  private let report: (ViewFault) -> Void
  private var rows = MappedRows()
  private var wanted: [Int] = []
  private var sharedKeys = SharedKeys.empty
  private var filling = Batch()
  private var running: (mapping: any ScriptMapping, batch: Batch)?
  private var json: [UInt8] = []
  private var limit = Int.max
  private(set) var mappedCount = 0
  private var last: [UInt8] = []
  /// Whether documents were left because of the limit.
  private var isCut = false

  init(
    _ members: [GroupMember], views: [Int], _ encoders: [ViewKeyEncoder], _ context: any ScriptContext,
    _ options: MapOptions, path: String, checkWanted: @escaping () throws -> Void,
    report: @escaping (ViewFault) -> Void
  ) {
    self.path = path
    self.checkWanted = checkWanted
    self.members = members
    self.views = views
    self.encoders = encoders
    self.context = context
    self.options = options
    self.report = report
  }

  var isFull: Bool {
    isCut || rows.usedBytes + (filling.documents.count + (running?.batch.documents.count ?? 0)) * 1024 > limit
  }
  var lastBeforeLimit: [UInt8]? { isCut ? last : nil }

  func begin(_ rows: MappedRows, _ sharedKeys: SharedKeys, wanted: [Int], limit: Int) {
    self.rows = rows
    self.sharedKeys = sharedKeys
    self.wanted = wanted
    self.limit = limit
    mappedCount = 0
    isCut = false
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
    let hasMore = try MapInput.writeJSON(of: document, sharedKeys: sharedKeys, options, into: &json)
    filling.batch.append(id: document.idBytes, json: json.span.bytes)
    filling.documents.append(
      Document(id: [UInt8](copying: document.idBytes), sequence: sequence, hasMore: hasMore))
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
    guard !isCut else { return }
    let mapping = try failing { try context.beginMapping(next.batch, views: wanted.map { views[$0] }) }
    try take()
    // Without it, the answers are dropped.
    if !isCut { running = (mapping, next) }
  }

  /// Takes the rows of the batch that is being mapped, as long as there is room.
  private func take() throws {
    guard let (mapping, batch) = running else { return }
    running = nil
    while true {
      let first = mapping.documentCount
      guard let part = try failing({ try mapping.next() }) else { return }
      try take(part, of: batch, from: first)
      try checkWanted()
      isCut = rows.usedBytes > limit && mapping.documentCount < batch.documents.count
      if isCut { return }
    }
  }

  private func take(_ part: ScriptRows, of batch: Batch, from first: Int) throws {
    guard let firstMember = wanted.first else { return }
    let emitter = RowEmitter(rows, encoders[firstMember], sharedKeys)
    let order = RowValueOrder(encoders, batch.batch)
    for index in 0..<part.documentCount {
      let document = batch.documents[first + index]
      mappedCount += 1
      last = document.id
      document.id.withUnsafeBytes { rows.begin($0, sequence: document.sequence) }
      for (place, member) in wanted.enumerated() {
        let name = members[member].name
        func fail(_ message: String) {
          report(
            ViewFault(view: name, documentID: String(decoding: document.id, as: UTF8.self), message: message))
        }
        if Log.isWritten(.debug, .index) { log(part, index, place, name, document.id) }
        if let exception = part.exception(document: index, view: place) {
          fail(exception)
          continue
        }
        emitter.begin(view: member, encoders[member])
        try part.forEachRow(document: index, view: place) { key, value, isDocument in
          key.withUnsafeBytes { key in
            if isDocument, document.hasMore {
              return batch.batch.withJSON(first + index) {
                emitter.emit(keyJSON: key, .json, valueJSON: $0)
              }
            }
            value.withUnsafeBytes {
              emitter.emit(keyJSON: key, isDocument ? .document : .json, valueJSON: $0)
            }
          }
        }
        if let failure = emitter.endDocument() { fail(failure) }
      }
      order.document = first + index
      rows.end(order)
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
