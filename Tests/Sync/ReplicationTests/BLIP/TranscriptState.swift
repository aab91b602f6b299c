// The databases of a recorded session before and after it (state.json, bodies.json): how they are made and compared.

import Blobs
import Documents
import Fleece
import Foundation
import TestSupport
import Touchstone

@testable import Replication

/// A revision of a document's tree.
struct RecordedRevision: Sendable {
  let id: String
  let parent: String?
  let sequence: UInt64
  let isDeleted: Bool
  let isLeaf: Bool
  let isClosed: Bool
  let hasBody: Bool
}

/// A document with its tree.
struct RecordedDocument: Sendable {
  let id: String
  let revision: String
  let sequence: UInt64
  let remote: String?
  let revisions: [RecordedRevision]

  init(_ value: JSONValue) {
    id = value["id"].string ?? ""
    revision = value["rev"].string ?? ""
    sequence = value["seq"].uint ?? 0
    remote = value["remote1"].string
    revisions = (value["revs"].array ?? []).map { revision in
      let flags = revision[1].int ?? 0
      return RecordedRevision(
        id: revision[0].string ?? "", parent: revision[3].string, sequence: revision[2].uint ?? 0,
        isDeleted: flags & 1 != 0, isLeaf: flags & 2 != 0, isClosed: flags & 64 != 0,
        hasBody: revision[4].int == 1)
    }
  }
}

/// One database at one time.
struct RecordedDatabase: Sendable {
  let value: JSONValue
  let documents: [RecordedDocument]
  /// Whether the trees are recorded, and not only the current revisions.
  let hasTrees: Bool

  init(_ value: JSONValue) {
    self.value = value
    hasTrees = value["docs"].array != nil
    documents = (value["docs"].array ?? []).map(RecordedDocument.init)
  }

  func uuid(_ name: String) -> [UInt8] { hex(value[name].string ?? "") }
  /// The current revisions by document.
  var current: [String: String] {
    if hasTrees { return Dictionary(uniqueKeysWithValues: documents.map { ($0.id, $0.revision) }) }
    return Dictionary(
      uniqueKeysWithValues: (value["docs_id_rev"].array ?? []).map {
        ($0[0].string ?? "", $0[1].string ?? "")
      })
  }
}

/// The state of both sides before and after a session.
struct TranscriptState: Sendable {
  let startClient: RecordedDatabase
  let startServer: RecordedDatabase
  let endClient: RecordedDatabase
  let endServer: RecordedDatabase
  let result: JSONValue
  private let bodies: JSONValue

  init(_ value: JSONValue, _ bodies: JSONValue) {
    self.bodies = bodies
    let (client, server) = (value["start"]["client"], value["start"]["server"])
    startClient = RecordedDatabase(client)
    startServer = RecordedDatabase(server)
    // "as at start"
    endClient = RecordedDatabase(
      value["end"]["client"].string == nil ? value["end"]["client"] : client)
    endServer = RecordedDatabase(
      value["end"]["server"].string == nil ? value["end"]["server"] : server)
    result = value["result"]
  }

  /// A document as it was at the first time that it is known.
  func document(_ id: String) -> RecordedDocument? {
    for database in [startClient, startServer, endClient, endServer] {
      if let document = database.documents.first(where: { $0.id == id }) { return document }
    }
    return nil
  }

  /// The body of a revision; nil if it isn't recorded.
  func body(_ id: String, _ revision: String) -> JSONValue? {
    guard let body = bodies.object?["\(id) \(revision)"] else { return nil }
    guard body["$json_sha1"].string == nil else { return TranscriptState.largeBody }
    return body
  }

  /// The body of about 2 MB. It is recorded only as the frames of one session.
  private static let largeBody: JSONValue? = {
    guard let session = try? TranscriptSession("v3/large-1-push", [:]) else { return nil }
    return session.messages.first { $0.profile == "rev" && $0.isRequest && $0.isFromClient }?.json
  }()
}

/// The contents of blobs, from the recorded transfers.
enum RecordedBlobs {
  static let all: [String: [UInt8]] = {
    var blobs: [String: [UInt8]] = [:]
    for session in TranscriptSession.all where session.name.hasPrefix("v3/blobs-") {
      var digests: [String: String] = [:]
      for message in session.messages where message.profile == "getAttachment" {
        // Requests and replies have the same number, in opposite directions.
        if message.isRequest {
          digests["\(message.isFromClient) \(message.number)"] = message.properties["digest"]
        } else if let digest = digests["\(!message.isFromClient) \(message.number)"] {
          if message.body.count == message.bodyCount { blobs[digest] = message.body }
        }
      }
    }
    return blobs
  }()
}

// MARK: - Making databases

/// Makes a database as it was recorded. It is closed and removed when the result goes.
final class ReplayDatabase {
  let database: Database
  private let directory = TemporaryDirectory()
  static let url = "ws://127.0.0.1:4984/db/_blipsync"

  /// `side` is client or server. Trees are pruned as the recording program does.
  init(_ session: TranscriptSession, _ side: String, _ engine: EngineName) throws {
    let recorded = side == "client" ? session.state.startClient : session.state.startServer
    let version = session.header[side].string ?? ""
    var options = try TestSupport.options(engine)
    options.maximumTreeDepth = version.contains("2.8") || session.group == "v2" ? 20 : 50
    let made = try Database.open("test", in: directory.path, options: options)
    let zip = "\(transcriptFolder ?? "")/\(session.name)/start-\(side).cblite2.zip"
    if FileManager.default.fileExists(atPath: zip) {
      let report = try made.importCBLite2(zip)
      guard report.skipped == 0, report.missingBlobs == 0 else { throw CocoaError(.fileReadCorruptFile) }
    } else {
      try Self.build(recorded, session.state, made)
    }
    try made.replicatingChanges { store in
      try store.importing {
        try $0.setIdentity(
          publicUUID: recorded.uuid("public_uuid"), privateUUID: recorded.uuid("private_uuid"))
      }
    }
    try made.close()
    database = try Database.open("test", in: directory.path, options: options)
    try database.replicatingChanges { store in
      for checkpoint in recorded.value["checkpoints"].array ?? [] {
        try store.setSyncCheckpoint(
          checkpoint["id"].string ?? "", Array((checkpoint["body"].string ?? "{}").utf8))
      }
      for checkpoint in recorded.value["peerCheckpoints"].array ?? [] {
        let (id, json) = (checkpoint["id"].string ?? "", Array((checkpoint["body"].string ?? "{}").utf8))
        var revision: UInt64?
        while "\(revision ?? 0)-cc" != checkpoint["rev"].string {
          revision = try store.setPeerCheckpoint(id, json, basedOn: revision)
        }
      }
      let remote = try store.remoteNumber(Self.url)
      try store.mark(
        recorded.documents.compactMap { document in document.remote.map { (document.id, $0) } },
        remote: remote)
    }
  }

  deinit { try? database.close() }

  /// Makes the documents from the recorded state.
  private static func build(_ recorded: RecordedDatabase, _ state: TranscriptState, _ database: Database)
    throws
  {
    try database.replicatingChanges { store in
      let inserter = DocumentInserter(store, keepsSequences: true)
      try inserter.inBatch {
        for document in recorded.documents.sorted(by: { $0.sequence < $1.sequence }) {
          try insert(document, state, inserter, store)
        }
      }
    }
  }

  private static func insert(
    _ document: RecordedDocument, _ state: TranscriptState, _ inserter: DocumentInserter,
    _ store: DocumentStore
  ) throws {
    // The memory that the revisions point to.
    var texts: [UnsafeMutableRawBufferPointer] = []
    defer { for text in texts { text.deallocate() } }
    func kept(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
      let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 1)
      copy.copyBytes(from: bytes)
      texts.append(copy)
      return UnsafeRawBufferPointer(rebasing: copy[..<bytes.count])
    }
    let places = Dictionary(
      uniqueKeysWithValues: document.revisions.enumerated().map { ($0.element.id, $0.offset) })
    let revisions = try document.revisions.map { revision -> ForeignRevision in
      let id = RevisionID(revision.id)
      var body = ForeignRevision.Body.none
      if revision.hasBody {
        guard let json = state.body(document.id, revision.id) else { throw CocoaError(.fileReadCorruptFile) }
        body = .json(kept(try json.jsonText()))
      }
      return ForeignRevision(
        generation: id?.generation ?? 0, suffix: kept(hex(id?.suffix ?? "")), isText: false,
        parent: revision.parent.flatMap { places[$0] } ?? -1, isDeleted: revision.isDeleted,
        isClosed: revision.isClosed, sequence: revision.sequence, body: body)
    }
    _ = try revisions.withUnsafeBufferPointer {
      try inserter.insert(kept(Array(document.id.utf8)), sequence: document.sequence, $0) { digest in
        guard let bytes = RecordedBlobs.all[digest.text] else { return false }
        let writer = try store.requiredBlobs.makeWriter()
        try bytes.withUnsafeBytes { try writer.write($0) }
        return try writer.finish().digest == digest
      }
    }
  }
}

// MARK: - Comparing databases

extension ReplayDatabase {
  /// Compares with a recorded state. `note` gets a kind and what differs.
  func compare(
    with recorded: RecordedDatabase, _ state: TranscriptState, marks: Bool,
    _ note: (_ kind: String, _ detail: String) -> Void
  ) throws {
    let database = database
    var own: [String: String] = [:]
    for document in try database.read({ try $0.documents(AllDocuments(.includingDeleted)) }) {
      own[document.id] = document.revisionID.description
    }
    for (id, revision) in recorded.current where own[id] != revision {
      note("current", "\(id): \(own[id] ?? "missing") for \(revision)")
    }
    for id in own.keys where recorded.current[id] == nil {
      note("extra", "\(id) isn't in the recorded state")
    }
    for document in recorded.documents where own[document.id] == document.revision {
      try compare(document, state, marks: marks, note)
    }
    for blob in recorded.value["blobs"].array ?? [] {
      guard let digest = blob["digest"].string.flatMap({ BlobDigest($0) }) else { continue }
      let isThere = try database.replicating { try $0.requiredBlobs.contains(digest) }
      if !isThere { note("blob", "\(digest) is missing") }
    }
  }

  private func compare(
    _ document: RecordedDocument, _ state: TranscriptState, marks: Bool,
    _ note: (_ kind: String, _ detail: String) -> Void
  ) throws {
    let id = document.id
    let own = try database.revisions(of: id) ?? []
    func describe(_ id: String, _ parent: String?, _ isDeleted: Bool, _ isLeaf: Bool) -> String {
      "\(id) < \(parent ?? "none")\(isDeleted ? " deleted" : "")\(isLeaf ? " leaf" : "")"
    }
    let ours = Set(own.map { describe($0.id.description, $0.parent?.description, $0.isDeleted, $0.isLeaf) })
    let theirs = Set(document.revisions.map { describe($0.id, $0.parent, $0.isDeleted, $0.isLeaf) })
    if ours != theirs {
      note(
        "tree",
        "\(id): more \(ours.subtracting(theirs).sorted()), fewer \(theirs.subtracting(ours).sorted())")
    }
    if let current = own.first(where: \.isCurrent), let body = state.body(id, document.revision),
      current.body != body
    {
      note("body", "\(id): \(String(describing: current.body)) for \(body)")
    }
    guard marks else { return }
    let mark = try database.replicating { try $0.mark(of: id, remote: $0.remoteNumber(Self.url)) }
    if mark != document.remote { note("mark", "\(id): \(mark ?? "none") for \(document.remote ?? "none")") }
  }

  /// Compares checkpoints without their times.
  func compareCheckpoints(_ recorded: JSONValue, isPeer: Bool, _ note: (String, String) -> Void) throws {
    for checkpoint in recorded.array ?? [] {
      let id = checkpoint["id"].string ?? ""
      let stored = try database.replicating { store -> (JSONValue?, String?) in
        let peer = isPeer ? try store.peerCheckpoint(id) : nil
        let json = try isPeer ? peer?.json : store.syncCheckpoint(id)
        return (
          try json.map { try JSONValue(json: String(decoding: $0, as: UTF8.self)) },
          peer.map { "\($0.revision)-cc" }
        )
      }
      let expected = try JSONValue(json: checkpoint["body"].string ?? "{}")
      for name in ["local", "remote", "localCompleted"] where stored.0?[name] ?? .null != expected[name] {
        let isFurther =
          try name == "local" && !isPeer && stored.0?[name].uint == database.lastSequence
        note(
          isFurther ? "further" : "checkpoint", "\(name): \(stored.0?[name] ?? .null) for \(expected[name])")
      }
      if isPeer, stored.1 != checkpoint["rev"].string {
        note("checkpoint-rev", "\(stored.1 ?? "none") for \(checkpoint["rev"])")
      }
    }
  }
}

extension ReplayDatabase {
  /// Makes edits of the recording's test, with the revisions that they had there.
  func apply(_ edits: [JSONValue], _ end: RecordedDatabase) throws {
    try database.replicatingChanges { store in
      let revisions = try edits.map { edit -> SyncRevision in
        let id = edit["id"].string ?? ""
        let current = try store.currentRevisions(of: [id])[0]?.revision
        let tree = end.documents.first { $0.id == id }?.revisions ?? []
        let isDeleted = edit["deleted"].bool ?? false
        let found =
          tree.first { $0.parent == current && $0.isDeleted == isDeleted }?.id ?? end.current[id]
        guard let found else { throw CocoaError(.fileReadUnknown) }
        return SyncRevision(
          id: id, history: [found] + (current.map { [$0] } ?? []), isDeleted: isDeleted,
          body: .json(try edit["body"].jsonText()))
      }
      for outcome in try store.apply(revisions, .report) {
        guard case .added = outcome else { throw CocoaError(.fileWriteUnknown) }
      }
    }
  }
}
