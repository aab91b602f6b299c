import Bytes
import Documents
import Fleece
import FullText
import Storage

/// Maps documents for the views of one group. Used on one thread at a time.
protocol GroupMapper: AnyObject {
  /// Begins a run. `wanted` are the members of the group to map for.
  func begin(_ rows: MappedRows, _ sharedKeys: SharedKeys, wanted: [Int])

  /// Maps a live document, now or with those that follow. Its rows are added to those that the run began with.
  func map(_ document: DocumentView) throws

  /// Adds a document without a live revision, which has no rows.
  func addRemoved(_ id: UnsafeRawBufferPointer)

  /// Maps the documents that wait.
  func finish() throws

  /// The bytes of documents that wait.
  var waitingBytes: Int { get }
}

/// Maps documents with functions of this process.
final class ClosureMapper: GroupMapper {
  /// What is done with each document for one view.
  private struct Work {
    let index: Int
    let map: ViewMap
    let hasType: Bool
    let encoder: ViewKeyEncoder
  }

  private let members: [GroupMember]
  private let encoders: [ViewKeyEncoder]
  private let report: (ViewFault) -> Void
  private var rows = MappedRows()
  private var works: [Work] = []
  private var emitter: RowEmitter?
  private var sharedKeys = SharedKeys.empty

  init(_ members: [GroupMember], _ encoders: [ViewKeyEncoder], report: @escaping (ViewFault) -> Void) {
    self.members = members
    self.encoders = encoders
    self.report = report
  }

  var waitingBytes: Int { 0 }

  func begin(_ rows: MappedRows, _ sharedKeys: SharedKeys, wanted: [Int]) {
    self.rows = rows
    works = wanted.compactMap { index in
      guard let map = members[index].map else { return nil }
      return Work(
        index: index, map: map, hasType: members[index].documentType != nil, encoder: encoders[index])
    }
    self.sharedKeys = sharedKeys
    emitter = wanted.first.map { RowEmitter(rows, encoders[$0], sharedKeys) }
    if let first = wanted.first { emitter?.view = first }
  }

  func addRemoved(_ id: UnsafeRawBufferPointer) {
    rows.begin(id, sequence: 0)
    rows.end()
  }

  func map(_ document: DocumentView) throws {
    guard let emitter else { return }
    let sequence = try document.currentSequence()
    document.idBytes.withUnsafeBytes { rows.begin($0, sequence: sequence) }
    let input = MappedDocument(document, sharedKeys, MapOptions())
    for work in works {
      if work.hasType, !members[work.index].accepts(input) { continue }
      if emitter.view != work.index || works.count > 1 {
        emitter.view = work.index
        emitter.encoder = work.encoder
      }
      do { try work.map(input, ViewEmitter(emitter)) } catch {
        report(ViewFault(view: members[work.index].name, documentID: document.id, message: "\(error)"))
      }
      if emitter.failure != nil { reportFailure(of: work.index, document.id, emitter) }
    }
    rows.end()
  }

  private func reportFailure(of index: Int, _ documentID: String, _ emitter: RowEmitter) {
    guard let failure = emitter.failure else { return }
    report(ViewFault(view: members[index].name, documentID: documentID, message: failure))
    emitter.failure = nil
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
