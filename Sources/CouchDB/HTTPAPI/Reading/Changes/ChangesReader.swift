import Bytes
import Documents
import Fleece
import Storage
import Touchstone
import Views

/// Reads the changes that a client wants, in slices, and writes their rows.
///
/// Each slice is of a snapshot of its own, which ends before anything is sent and before a script runs. Used by one thread at a time, which
/// its owner sees to.
final class ChangesReader: @unchecked Sendable {
  /// A slice ends when it has this many bytes, or has looked at this many changes.
  private let sliceBytes: Int
  private static let sliceChanges = 10_000
  /// How many changes a script gets at a time, and the most bytes of them.
  private static let scriptChanges = 128
  private static let scriptBytes = 1 << 20

  private let database: Database
  let options: ChangesOptions
  private let filter: ChangesFilter
  private let ranks: EntryRanks

  /// The rows of the last slice.
  private(set) var text: JSONWriter
  /// The last sequence that was looked at; descending, the lowest one.
  private(set) var position: UInt64
  /// How many more rows are wanted.
  private(set) var left: Int
  /// The number of rows since the last `begin`.
  private(set) var rows = 0
  /// Whether the changes up to the end have been looked at, or as many as are wanted have been found.
  private(set) var isDone = false
  /// The last sequence when `begin` was called: where this pass ends.
  private var end: UInt64 = 0
  private var hasBegun = false
  /// Where the first pass began; nil before that.
  private var start: UInt64?
  /// Where this pass began.
  private var passStart: UInt64 = 0
  private let attachments: AttachmentContents
  private let sequences: CouchDBSequences
  private let mark: [UInt8]
  /// Throws when nobody wants the changes any more. Called while a script chooses.
  var checkWanted: () throws -> Void

  init(_ call: DatabaseCall, _ options: ChangesOptions, _ filter: ChangesFilter, sliceBytes: Int) {
    database = call.database
    self.options = options
    self.filter = filter
    self.sliceBytes = sliceBytes
    ranks = call.service.watches.watch(call.database).ranks
    attachments = AttachmentContents(call.database)
    sequences = call.database.couchDBSequences
    mark = Array(sequences.mark.utf8)
    checkWanted = { try call.checkWanted() }
    left = options.limit
    text = JSONWriter(capacity: 256)
    position = 0
  }

  /// The error of HTTP for an error of a filter.
  static func error(_ error: ViewError) -> CouchDBError {
    error.code == .notFound
      ? CouchDBError(404, "not_found", error.message) : CouchDBError(500, "error", error.description)
  }

  /// Begins a pass from the last position to what is the last sequence now.
  func begin() { (hasBegun, isDone, rows) = (false, false, 0) }

  /// Lets memory go that no slice needs any more.
  func rest() { if text.count > 0 || hasBegun { text = JSONWriter(capacity: 64) } }

  // MARK: Slices

  /// Reads the next slice: `text` has its rows afterwards.
  func read() throws {
    let (position, left, rows, hasBegun, start) = (position, left, rows, hasBegun, start)
    var candidates: [Candidate] = []
    try database.replicating { store in
      try store.read(attempts: DocumentStore.defaultAttempts) { snapshot in
        // The snapshot may expire, and then it all begins again.
        text.removeAll()
        attachments.begin()
        candidates = []
        (self.position, self.left, self.rows) = (position, left, rows)
        (self.hasBegun, self.start) = (hasBegun, start)
        try beginPass(snapshot)
        if left == 0 {
          isDone = true
        } else if filter.looksUp {
          try lookUp(snapshot)
        } else {
          try scan(snapshot, &candidates)
        }
      }
    }
    guard !candidates.isEmpty, case .script(let filter, let request) = filter else { return }
    try write(candidates, try choose(candidates, filter, request))
  }

  private func beginPass(_ snapshot: DocumentSnapshot) throws {
    guard !hasBegun else { return }
    end = try snapshot.lastSequence
    if start == nil {
      let first: UInt64
      switch options.since {
      case .now: first = end
      // A higher one is of changes that are lost, such as those behind a backup. What came since may have the same numbers.
      case .sequence(let sequence): first = sequence <= end ? sequence : 0
      }
      start = first
      position = options.isDescending ? end + 1 : first
    }
    passStart = options.isDescending ? 0 : position
    hasBegun = true
  }

  private func scan(_ snapshot: DocumentSnapshot, _ candidates: inout [Candidate]) throws {
    let writer = try CouchDBDocumentWriter(snapshot, options.document, contents: attachments.reader)
    let sharedKeys = try snapshot.sharedKeys
    let isScripted = filter.isScript
    let selection = try filter.selector.map { selector, fields in
      try ChangesSelection(selector, fields, snapshot, listsAllLeaves: options.listsAllLeaves, checkWanted)
    }
    var looked = 0
    var scriptBytes = 0
    var isAtEnd = true
    // In this order nothing can come twice; behind the end of the pass come changes that were made meanwhile.
    try snapshot.forEachChangedDocument(
      after: options.isDescending ? 0 : position, before: options.isDescending ? position : end + 1,
      order: options.isDescending ? .descending : .ascending
    ) { sequence, document in
      looked += 1
      position = sequence
      if filter.mayChoose(document, sharedKeys), !options.isActiveOnly || !document.isDeleted {
        if let selection {
          let revisions = try selection.revisions(of: document)
          if !revisions.isEmpty { try append(document, revisions, selection.fields, sequence, writer) }
        } else if isScripted {
          let candidate = try Candidate(document, sequence, options, snapshot, writer, sharedKeys)
          scriptBytes += candidate.bytes
          candidates.append(candidate)
        } else {
          try append(document, sequence, writer)
        }
      }
      let isFull =
        text.count >= sliceBytes || looked >= Self.sliceChanges || left == 0
        || candidates.count >= Self.scriptChanges || scriptBytes >= Self.scriptBytes
      if isFull { isAtEnd = false }
      return !isFull
    }
    isDone = left == 0
    if isAtEnd {
      isDone = true
      if !options.isDescending { position = max(position, end) }
    }
  }

  /// Looks the wanted documents up, and writes those that changed since, in the order of their changes.
  private func lookUp(_ snapshot: DocumentSnapshot) throws {
    let writer = try CouchDBDocumentWriter(snapshot, options.document, contents: attachments.reader)
    var found: [(sequence: UInt64, id: [UInt8])] = []
    func add(_ document: DocumentView) {
      let sequence = document.sequence
      guard sequence <= end, !options.isActiveOnly || !document.isDeleted else { return }
      if options.isDescending ? sequence < position : sequence > position {
        found.append((sequence, [UInt8](copying: document.idBytes)))
      }
    }
    if case .few(let ids) = filter {
      for id in ids { _ = try snapshot.withDocument(id.bytes.span.bytes, includeDeleted: true) { add($0) } }
    } else {
      try snapshot.enumerate(AllDocuments(.includingDeleted, prefix: "_design/")) {
        add($0)
        return true
      }
    }
    found.sort { ($0.sequence < $1.sequence) != options.isDescending }
    for (sequence, id) in found {
      _ = try snapshot.withDocument(id.span.bytes, includeDeleted: true) {
        try append($0, sequence, writer)
      }
      position = sequence
      if left == 0 { isDone = true }
      if isDone || text.count >= sliceBytes { return }
    }
    isDone = true
    if !options.isDescending { position = max(position, end) }
  }

  // MARK: Rows

  private func append(_ document: DocumentView, _ sequence: UInt64, _ writer: CouchDBDocumentWriter) throws {
    beginRow(sequence)
    document.idBytes.withUnsafeBytes { text.append(string: $0) }
    append(",\"changes\":[{\"rev\":\"")
    try text.append { (text: inout ByteBuffer) throws in try document.appendRevisionID(to: &text) }
    append("\"}")
    if options.listsAllLeaves, document.mayHaveConflicts {
      let leaves = try document.conflictingLeaves()
      for id in leaves.live + leaves.deleted {
        append(",{\"rev\":")
        text.append(string: id.description)
        append("}")
      }
    }
    append(document.isDeleted ? "],\"deleted\":true" : "]")
    if options.includesDocuments {
      append(",\"doc\":")
      try writer.append(document, to: &text)
    }
    endRow(sequence)
  }

  /// Appends the row of a document of which a selector chose these revisions. Its `doc` has these fields; nil for all.
  private func append(
    _ document: DocumentView, _ revisions: [String], _ fields: [MangoField]?, _ sequence: UInt64,
    _ writer: CouchDBDocumentWriter
  ) throws {
    beginRow(sequence)
    document.idBytes.withUnsafeBytes { text.append(string: $0) }
    append(revisions, isDeleted: document.isDeleted)
    if options.includesDocuments {
      append(",\"doc\":")
      if let fields {
        var json = JSONWriter()
        try writer.append(document, to: &json)
        MangoField.choose(fields, of: try json.withBytes { try JSONValue(json: $0) }).write(to: &text)
      } else {
        try writer.append(document, to: &text)
      }
    }
    endRow(sequence)
  }

  /// Appends the members for these revisions.
  private func append(_ revisions: [String], isDeleted: Bool) {
    append(",\"changes\":[")
    for (index, revision) in revisions.enumerated() {
      append(index > 0 ? ",{\"rev\":" : "{\"rev\":")
      text.append(string: revision)
      append("}")
    }
    append(isDeleted ? "],\"deleted\":true" : "]")
  }

  private func append(_ text: StaticString) {
    text.withUTF8Buffer { self.text.append(json: UnsafeRawBufferPointer($0)) }
  }

  /// Writes what comes before the document's ID.
  private func beginRow(_ sequence: UInt64) {
    switch options.feed {
    case .normal, .longpoll: if rows > 0 { append(",\r\n") }
    case .continuous: break
    case .eventsource: append("data: ")
    }
    append("{\"seq\":")
    appendSequence(sequence)
    append(",\"id\":")
  }

  private func endRow(_ sequence: UInt64) {
    append("}")
    switch options.feed {
    case .normal, .longpoll: break
    case .continuous: append("\n")
    case .eventsource:
      append("\nid: ")
      appendSequence(sequence)
      append("\n\n")
    }
    rows += 1
    left -= 1
  }

  /// With `seq_interval`, CouchDB leaves out those where the number of rows that are left isn't a multiple.
  private func appendSequence(_ sequence: UInt64) {
    if let interval = options.sequenceInterval, left % interval != 0 { return text.appendNull() }
    append("\"")
    text.append(sequence)
    text.append(json: mark)
    append("\"")
  }

  // MARK: Scripts

  /// A change that a script is to choose, with the leaves that it chooses from.
  private struct Candidate {
    let sequence: UInt64
    let id: [UInt8]
    let isDeleted: Bool
    /// The IDs of the leaves, the current revision first.
    var revisions: [String]
    var scripted: [ScriptedRevision]
    /// The JSON of the document, if it is wanted.
    var document: [UInt8]?

    /// The memory that it takes, about.
    var bytes: Int { (document?.count ?? 0) + scripted.reduce(0) { $0 + $1.json.count } }

    init(
      _ view: DocumentView, _ sequence: UInt64, _ options: ChangesOptions, _ snapshot: DocumentSnapshot,
      _ writer: CouchDBDocumentWriter, _ sharedKeys: SharedKeys
    ) throws {
      self.sequence = sequence
      id = [UInt8](copying: view.idBytes)
      isDeleted = view.isDeleted
      var revisions = [try view.revisionID().description]
      var others: [ScriptedRevision] = []
      var conflicts: [RevisionID] = []
      try snapshot.forEachOtherLeaf(of: view) { revision, isDeleted, body in
        // As in CouchDB, a function sees the conflicts unless it is asked for each of them.
        guard options.listsAllLeaves else {
          if !isDeleted { conflicts.append(revision) }
          return
        }
        revisions.append(revision.description)
        others.append(
          try ScriptedRevision(id: view.idBytes, revision, isDeleted: isDeleted, body, sharedKeys: sharedKeys)
        )
      }
      self.revisions = revisions
      scripted = [try ScriptedRevision(view, conflicts: conflicts, sharedKeys: sharedKeys)] + others
      guard options.includesDocuments else { return }
      var json = JSONWriter()
      try writer.append(view, to: &json)
      var text: [UInt8] = []
      json.write(to: &text)
      document = text
    }
  }

  /// Which leaves a script chooses.
  private func choose(
    _ candidates: [Candidate], _ filter: DesignFilter, _ request: JSONObject
  ) throws -> [Bool] {
    do {
      return try filter.choose(
        candidates.flatMap(\.scripted), request: request, checkWanted: checkWanted)
    } catch let error as ViewError { throw Self.error(error) }
  }

  /// Writes the rows of the chosen leaves.
  private func write(_ candidates: [Candidate], _ chosen: [Bool]) throws {
    var next = 0
    for candidate in candidates {
      let revisions = zip(candidate.revisions, chosen[next...]).filter { $0.1 }.map { $0.0 }
      next += candidate.revisions.count
      guard !revisions.isEmpty else { continue }
      beginRow(candidate.sequence)
      candidate.id.withUnsafeBytes { text.append(string: $0) }
      append(revisions, isDeleted: candidate.isDeleted)
      if let document = candidate.document {
        append(",\"doc\":")
        document.withUnsafeBytes { text.append(json: $0) }
      }
      endRow(candidate.sequence)
      guard left == 0 else { continue }
      // What a script would have chosen behind is for another request.
      position = candidate.sequence
      isDone = true
      return
    }
  }

  // MARK: The end

  /// The sequence from which a client goes on: `last_seq`.
  var lastSequence: String { sequences.text(options.isDescending && position > end ? end : position) }

  /// The number of changes that are left: `pending`.
  func pending() throws -> Int {
    try database.replicating { store in
      try store.read(attempts: DocumentStore.defaultAttempts) { snapshot in
        let total = try snapshot.count(of: .changes)
        // The other changes of the pass don't count as examined.
        if filter.countsRows { return max(0, try changes(after: passStart, total, snapshot) - rows) }
        guard options.isDescending else { return try changes(after: position, total, snapshot) }
        return position == 0 ? 0 : max(0, total - (try changes(after: position - 1, total, snapshot)))
      }
    }
  }

  private func changes(after sequence: UInt64, _ total: Int, _ snapshot: DocumentSnapshot) throws -> Int {
    let last = try snapshot.lastSequence
    guard sequence > 0 else { return total }
    guard sequence < last else { return 0 }
    // Every sequence has its change: no document was changed twice.
    if UInt64(total) == last { return Int(last - sequence) }
    let next = withUnsafeBytes(of: (sequence + 1).bigEndian) { Array($0) }
    return max(0, total - (try ranks.count(of: .changes, before: next, in: snapshot)))
  }
}
