import Bytes
import Documents
import Fleece
import FullText
import Storage

/// Maps documents for the views of one group. Used on one thread at a time.
protocol GroupMapper: AnyObject {
  /// Begins a run. `wanted` are the members of the group to map for. Documents are mapped until their rows take more than
  /// `limit` bytes.
  func begin(_ rows: MappedRows, _ sharedKeys: SharedKeys, wanted: [Int], limit: Int)

  /// Maps a live document, now or with those that follow. Its rows are added to those that the run began with.
  func map(_ document: DocumentView) throws

  /// Adds a document without a live revision, which has no rows.
  func addRemoved(_ id: UnsafeRawBufferPointer)

  /// Maps the documents that wait, in their order, as long as there is room.
  func finish() throws

  /// Whether the rows take more than the limit, or may do so with those of the documents that wait. Give it no more
  /// documents then.
  var isFull: Bool { get }

  /// The ID of the last document that was mapped, if there was no room for those that were given after it. Known when it has
  /// finished.
  var lastBeforeLimit: [UInt8]? { get }

  /// The number of documents that were mapped in this run.
  var mappedCount: Int { get }
}

/// Maps documents with functions of this process.
final class ClosureMapper: GroupMapper {
  /// What is done with each document for one view.
  private final class Work {
    let index: Int
    let map: ViewMap
    let member: GroupMember
    let hasType: Bool
    let encoder: ViewKeyEncoder

    init(_ index: Int, _ map: @escaping ViewMap, _ member: GroupMember, _ encoder: ViewKeyEncoder) {
      self.index = index
      self.map = map
      self.member = member
      self.encoder = encoder
      hasType = member.documentType != nil
    }
  }

  /// One run.
  private final class Run {
    let rows: MappedRows
    let works: [Work]
    let emitter: RowEmitter
    let sharedKeys: SharedKeys

    init(_ rows: MappedRows, _ works: [Work], _ emitter: RowEmitter, _ sharedKeys: SharedKeys) {
      self.rows = rows
      self.works = works
      self.emitter = emitter
      self.sharedKeys = sharedKeys
    }
  }

  private let members: [GroupMember]
  private let encoders: [ViewKeyEncoder]
  private let report: (ViewFault) -> Void
  // `map` is called for each document, and nothing else runs meanwhile.
  @exclusivity(unchecked) private var run: Run?

  init(_ members: [GroupMember], _ encoders: [ViewKeyEncoder], report: @escaping (ViewFault) -> Void) {
    self.members = members
    self.encoders = encoders
    self.report = report
  }

  @exclusivity(unchecked) private var limit = Int.max
  @exclusivity(unchecked) private(set) var mappedCount = 0

  var isFull: Bool { run.map { $0.rows.usedBytes > limit } ?? false }
  // Each document is mapped when it is given.
  var lastBeforeLimit: [UInt8]? { nil }

  func begin(_ rows: MappedRows, _ sharedKeys: SharedKeys, wanted: [Int], limit: Int) {
    self.limit = limit
    mappedCount = 0
    let works = wanted.compactMap { index in
      members[index].map.map { Work(index, $0, members[index], encoders[index]) }
    }
    run = works.first.map { first in
      let emitter = RowEmitter(rows, first.encoder, sharedKeys)
      emitter.begin(view: first.index, first.encoder)
      return Run(rows, works, emitter, sharedKeys)
    }
  }

  func addRemoved(_ id: UnsafeRawBufferPointer) {
    guard let run else { return }
    run.rows.begin(id, sequence: 0)
    run.rows.end()
  }

  func map(_ document: DocumentView) throws {
    mappedCount += 1
    guard let run else { return }
    let sequence = try document.currentSequence()
    document.idBytes.withUnsafeBytes { run.rows.begin($0, sequence: sequence) }
    let input = MappedDocument(document, run.sharedKeys, MapOptions())
    if run.works.count == 1 {
      map(input, run.works[0], run.emitter)
    } else {
      for work in run.works {
        run.emitter.begin(view: work.index, work.encoder)
        map(input, work, run.emitter)
      }
    }
    run.rows.end()
  }

  @inline(__always)
  private func map(_ document: MappedDocument, _ work: Work, _ emitter: RowEmitter) {
    if work.hasType, !work.member.accepts(document) { return }
    do { try work.map(document, ViewEmitter(emitter)) } catch {
      report(ViewFault(view: work.member.name, documentID: document.id, message: "\(error)"))
    }
    if let failure = emitter.endDocument() {
      report(ViewFault(view: work.member.name, documentID: document.id, message: failure))
    }
  }

  func finish() throws {}
}

/// A view of a group, as it is to be updated.
struct GroupMember: Sendable {
  /// The view's whole name.
  var name: String
  /// The map function; nil if a script maps.
  var map: ViewMap?
  var mapVersion: [UInt8]
  var collation: ViewCollation
  var documentType: [UInt8]?
  var reducer: (any Reducer)?
  /// That of text keys.
  var language: FullTextLanguage?

  func accepts(_ document: MappedDocument) -> Bool {
    guard let documentType else { return true }
    guard let type = document["type"]?.utf8 else { return false }
    return type.byteCount == documentType.count
      && documentType.withUnsafeBytes { wanted in type.withUnsafeBytes { compareBytes($0, wanted) == 0 } }
  }

  /// What names the partial reductions that are stored.
  var storedReducer: [UInt8] { Array(ReductionTree.identity(of: reducer).utf8) }
}

extension ViewRecord {
  /// The record that a view has before its first row.
  init(_ member: GroupMember, number: UInt32) {
    self.init(
      number: number, collation: member.collation, mapVersion: member.mapVersion,
      documentType: member.documentType,
      collator: Array(ViewKeyEncoder.collatorVersion(member.collation).utf8), language: member.language)
  }

  /// Whether an update of the view has nothing to do in a snapshot.
  func isFresh(_ member: GroupMember, in snapshot: DocumentSnapshot) throws -> Bool {
    try stage == .whole && isSameMap(ViewRecord(member, number: number)) && reducer == member.storedReducer
      && lastSequence >= snapshot.lastSequence && purge >= snapshot.newestPurge
  }
}
