import Blobs
import Bytes
import Documents
import Fleece
import Network
import Replication
import Storage
import Transport

/// The digests of this library that a document's attachments have.
struct BlobNames: Sendable, ExpressibleByArrayLiteral {
  var digests: [BlobDigest]
  init(arrayLiteral elements: BlobDigest...) { digests = elements }
  init(_ document: WireDocument) {
    digests = (document.attachments ?? [:]).compactMap { BlobDigest($0.value["digest"].string ?? "") }
  }
}

/// Fetches attachments.
///
/// Documents here name their attachments by the SHA-1 of the stored bytes. A server of this library does so too, and then they
/// are fetched only if they are missing. CouchDB has MD5: such attachments are fetched before the document is stored, unless a
/// stored ancestor has them.
final class AttachmentPull: @unchecked Sendable {
  static let downloadsInFlight = 6

  /// Where an attachment is.
  struct Source: Sendable {
    let id: String
    let revision: String
    let name: String
    let isCompressed: Bool
    /// The length of what is stored, and of what that decodes to, if they are known.
    let length: UInt64?
    let decodedLength: UInt64?
    /// The MD5 of what is stored, in base64.
    let md5: String?
    /// The blob of the body that it stands for, whose bytes are plain. They may have been replaced.
    let blob: BlobDigest?

    init(_ document: WireDocument, _ name: String, _ entry: AttachmentEntry, blob: BlobDigest? = nil) {
      id = document.id
      revision = document.revision
      self.name = name
      self.blob = blob
      let isPlain = blob != nil
      isCompressed = entry.isCompressed && !isPlain
      length = isPlain ? entry.members["length"]?.uint : entry.storedLength
      decodedLength = entry.members["length"]?.uint
      md5 = isPlain && entry.isCompressed ? nil : entry.md5
    }
  }

  private weak var peer: HTTPPeer?
  private let requester: DatabaseRequester
  /// The threads that may wait for the disk.
  let disk = Workers(maximum: 4)
  private let lane: JobLane

  private struct State {
    var sources: [BlobDigest: (source: Source, count: Int)] = [:]
  }
  private let state = Lock(State())
  private let downloads = JobLimit(downloadsInFlight)

  init(_ peer: HTTPPeer) {
    self.peer = peer
    requester = peer.requester
    lane = JobLane(on: disk)
  }

  /// Makes a writer for the bytes of an attachment.
  func makeWriter() throws -> BlobWriter {
    guard let owner = peer?.owner else { throw ReplicationError.connectionEnded }
    return try owner.makeBlobWriter()
  }

  // MARK: Documents

  /// Makes the body of a document whose attachments are here or can be fetched by their digest.
  func prepare(_ item: ArrivedRevision, _ done: @escaping Completion<[UInt8]>) {
    lane.enqueue { [self] in
      do { try prepareNow(item, done) } catch { done(.failure(ReplicationError(error))) }
    }
  }

  /// A document whose attachments are fetched.
  private final class Preparation: Sendable {
    let item: ArrivedRevision
    let done: Completion<[UInt8]>
    let hasStandIns: Bool
    let state: Lock<(entries: JSONObject, left: Int, error: ReplicationError?)>

    init(
      _ item: ArrivedRevision, _ entries: JSONObject, _ left: Int, hasStandIns: Bool,
      _ done: @escaping Completion<[UInt8]>
    ) {
      self.item = item
      self.done = done
      self.hasStandIns = hasStandIns
      state = Lock((entries, left, nil))
    }

    func take(_ name: String, _ result: Result<JSONObject, ReplicationError>) {
      let isLast = state.withLock { state in
        switch result {
        case .success(let entry): state.entries[name] = .object(entry)
        case .failure(let error): state.error = state.error ?? error
        }
        state.left -= 1
        return state.left == 0
      }
      if isLast { finish() }
    }

    func finish() {
      let (entries, error) = state.withLock { ($0.entries, $0.error) }
      if let error { return done(.failure(error)) }
      do {
        let body = try item.document.body(entries)
        done(.success(hasStandIns ? try WireBody.stored(body) : body))
      } catch { done(.failure(ReplicationError(error))) }
    }
  }

  private func prepareNow(_ item: ArrivedRevision, _ done: @escaping Completion<[UInt8]>) throws {
    lane.assertCurrent()
    let document = item.document
    var entries = document.attachments ?? [:]
    let hasStandIns = entries.keys.contains(where: BlobStandIn.mayName)
    var blobs = JSONObject()
    if hasStandIns { blobs = WireBody.standIns(of: try SyncBody.json(try document.body(nil)).value()) }
    var older: Ancestor?
    var needed: [(Source, AttachmentEntry)] = []
    for (name, value) in entries {
      guard var entry = AttachmentEntry(value) else { throw WireDocument.invalid }
      let blob = blobs[name]?.object
      if let stored = item.stored[name], blob == nil || stored["encoding"].isNull {
        entries[name] = stored
      } else if let data = entry.data, let stored = try store(data, &entry) {
        entries[name] = .object(stored)
      } else if let digest = entry.digest.flatMap({ BlobDigest($0) }) {
        entries[name] = .object(entry.asStub)
        keep(digest, Source(document, name, entry))
      } else {
        if older == nil { older = try ancestor(of: item) }
        let standsFor = try blob.flatMap { try self.blob(of: entry, named: name, $0, older) }
        if let standsFor {
          var standIn = entry.asStub
          standIn["digest"] = standsFor["digest"]
          entries[name] = .object(standIn)
        } else if let known = older?.attachments[name]?.object, known["revpos"]?.uint == entry.revpos,
          known["length"]?.uint == entry.members["length"]?.uint, try isSame(known, entry)
        {
          var same = known
          same["content_type"] = entry.members["content_type"]
          entries[name] = .object(same)
        } else {
          let digest = blob?["digest"]?.string.flatMap { BlobDigest($0) }
          needed.append((Source(document, name, entry, blob: digest), entry))
        }
      }
    }
    let preparation = Preparation(item, entries, needed.count, hasStandIns: hasStandIns, done)
    guard !needed.isEmpty else { return preparation.finish() }
    for (source, entry) in needed {
      store(source, entry) { preparation.take(source.name, $0) }
    }
  }

  /// Stores an attachment that is in its document, decoded. Nil if these aren't the bytes whose digest the document has,
  /// but perhaps those that they decode to.
  private func store(_ data: String, _ entry: inout AttachmentEntry) throws -> JSONObject? {
    guard let bytes = Base64.decoded(data) else { throw WireDocument.invalid }
    let writer = try makeWriter()
    try bytes.withUnsafeBytes { try writer.write($0) }
    let blob = try writer.finish()
    let md5 = MD5()
    bytes.withUnsafeBytes { md5.update($0) }
    guard entry.isCompressed || entry.digest == nil || entry.means(blob, md5: md5.base64) else {
      entry.members["length"] = JSONValue(blob.length)
      return nil
    }
    return entry.stored(blob, isCompressed: false)
  }

  /// What is stored here of an ancestor.
  private struct Ancestor {
    var generation: UInt64 = 0
    var attachments = JSONObject()
    /// By the names of their stand-ins.
    var blobs = JSONObject()
  }

  /// The newest ancestor that is stored here; an empty one if none is.
  private func ancestor(of item: ArrivedRevision) throws -> Ancestor {
    let history = item.document.history
    for ancestor in item.wanted.ancestors where history.contains(where: { $0.hasSameBytes(as: ancestor) }) {
      guard let body = try peer?.owner?.storedBody(of: item.document.id, ancestor) else { continue }
      let value = try body.value()
      return Ancestor(
        generation: RevisionID(ancestor)?.generation ?? 0,
        attachments: value[WireBody.attachments].object ?? [:], blobs: WireBody.standIns(of: value))
    }
    return Ancestor()
  }

  /// The blob that an attachment stands for, if it is here: that of the body, or that of the ancestor. Clients that know no blobs
  /// replace the attachment, and leave the body as it was.
  private func blob(
    of entry: AttachmentEntry, named name: String, _ blob: JSONObject, _ older: Ancestor?
  ) throws -> JSONObject? {
    for candidate in [blob, older?.blobs[name]?.object].compactMap(\.self)
    where candidate["length"]?.uint == entry.members["length"]?.uint {
      if !entry.isCompressed {
        if try isSame(candidate, entry) { return candidate }
      } else if let older, candidate["digest"] == older.blobs[name]?.object?["digest"],
        entry.revpos.map({ $0 <= older.generation }) ?? false,
        let digest = candidate["digest"]?.string.flatMap({ BlobDigest($0) }),
        (try? peer?.owner?.openBlob(digest)) != nil
      {
        // The MD5 of gzip says nothing of the plain bytes. But the attachment hasn't changed since the ancestor.
        return candidate
      }
    }
    return nil
  }

  /// Whether an attachment that is here has this MD5. Merged revisions may have one of another branch with the same `revpos`.
  private func isSame(_ known: JSONObject, _ entry: AttachmentEntry) throws -> Bool {
    guard let digest = known["digest"]?.string.flatMap({ BlobDigest($0) }), let md5 = entry.md5,
      let reader = try? peer?.owner?.openBlob(digest)
    else { return false }
    let stream = MD5()
    while case let piece = try reader.read(upTo: 1 << 16), !piece.isEmpty {
      piece.withUnsafeBytes { stream.update($0) }
    }
    return stream.base64 == md5
  }

  private func keep(_ digest: BlobDigest, _ source: Source) {
    state.withLock { $0.sources[digest] = (source, ($0.sources[digest]?.count ?? 0) + 1) }
  }

  /// A document with these digests is stored, or wasn't.
  func forget(_ blobs: BlobNames) {
    guard !blobs.digests.isEmpty else { return }
    state.withLock { state in
      for digest in blobs.digests {
        guard let known = state.sources[digest] else { continue }
        state.sources[digest] = known.count > 1 ? (known.source, known.count - 1) : nil
      }
    }
  }

  // MARK: Bytes

  /// Fetches an attachment that is missing here, by its digest.
  func fetch(_ blob: MissingBlob, into writer: BlobWriter, _ done: @escaping Completion<Void>) {
    guard let source = state.withLock({ $0.sources[blob.digest]?.source }) else {
      return done(.failure(ReplicationError(.http, 404, "no attachment has the digest \(blob.digest.text)")))
    }
    let given = GivenWriter(writer: writer)
    download(source, into: { given }) { done($0.map { _ in }) }
  }

  struct GivenWriter: @unchecked Sendable { let writer: BlobWriter }

  /// Stores an attachment, and returns what a document says of it here.
  private func store(
    _ source: Source, _ entry: AttachmentEntry, attempt: Int = 1, _ done: @escaping Completion<JSONObject>
  ) {
    download(source) { [self] in
      GivenWriter(writer: try makeWriter())
    } done: { [self] result in
      lane.enqueue { [self] in
        switch result {
        case .failure(let error) where requester.mayRepeat(error, after: attempt):
          requester.afterPause(attempt, error) { [self] in store(source, entry, attempt: attempt + 1, done) }
        case .failure(let error): done(.failure(error))
        case .success(let (given, bytes)):
          do {
            let stored = try given.writer.finish()
            guard bytes.isVerified || stored.digest == source.blob else { throw BlobDownload.otherMD5 }
            done(.success(entry.stored(stored, isCompressed: bytes.isCompressed)))
          } catch { done(.failure(ReplicationError(error))) }
        }
      }
    }
  }

  /// Writes the bytes of an attachment. Returns the writer, which is made when it is needed, and what they are. Asks in another
  /// way when what comes isn't what the document says.
  private func download(
    _ source: Source, asking ways: [HTTPClientRequest.Decoding] = [],
    into writer: @escaping @Sendable () throws -> GivenWriter,
    done: @escaping Completion<(GivenWriter, BlobDownload.Bytes)>
  ) {
    downloads.enqueue { [self] ended in
      @Sendable func end(_ result: Result<(GivenWriter, BlobDownload.Bytes), ReplicationError>) {
        done(result)
        ended()
      }
      let given: GivenWriter
      do { given = try writer() } catch { return end(.failure(ReplicationError(error))) }
      let path = HTTPDatabaseURL.path(source.id) + "/" + HTTPDatabaseURL.escaped(source.name)
      guard var request = requester.request("GET", path, [("rev", source.revision)]) else {
        return end(.failure(ReplicationError(.http, 414, "the name of the attachment is too long for a URL")))
      }
      request.headers = [("Accept", "*/*")]
      request.decoding = ways.last ?? (source.isCompressed ? .encoded : .none)
      let asked = ways + [request.decoding]
      let download = BlobDownload(given, source, request.decoding) { [self] result in
        switch result {
        case .success(.whole(let bytes)): end(.success((given, bytes)))
        case .failure(let error): end(.failure(error))
        case .success(.better(let way, let error)):
          guard !asked.contains(way) else { return end(.failure(error)) }
          ended()
          self.download(source, asking: asked + [way], into: writer, done: done)
        }
      }
      if LaneSink.send(request, by: requester, into: download, on: disk) == nil {
        end(.failure(.connectionEnded))
      }
    }
  }
}
