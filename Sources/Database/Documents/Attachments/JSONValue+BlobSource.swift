// The objects in a JSONValue that refer to blobs carry the source of the blob's content (JSONObject.contentSource).
// So the content goes wherever the object goes: into arrays, into other documents, through Codable types. Values
// that are read from a document get the blobs of its database as their source.

import Blobs
import Fleece
import Storage

extension JSONObject {
  /// The source of the content of the blob that this object refers to, nil if it isn't known.
  var blobSource: BlobSource? { contentSource as? BlobSource }
}

extension JSONValue {
  private var isContainer: Bool {
    switch self {
    case .array, .object: true
    default: false
    }
  }

  /// Returns the value with the source of each blob, for a value that was read from `record`.
  func withContent(from record: StoredBytes) -> JSONValue {
    guard isContainer, let blobs = record.blobs, record.withBytes({ mayNameBlob($0) }) else { return self }
    return withContent(from: blobs)
  }

  /// Returns the value with this source for each blob. The value was stored.
  func withContent(from source: BlobSource?) -> JSONValue {
    guard isContainer, let source else { return self }
    var value = self
    value.setSource(source)
    return value
  }

  /// A stored value is nested at most `FleeceLimits.depth` deep.
  private mutating func setSource(_ source: BlobSource) {
    switch self {
    case .array(var items):
      self = .null
      for index in items.indices where items[index].isContainer { items[index].setSource(source) }
      self = .array(items)
    case .object(var members):
      self = .null
      members.changeValues { if $0.isContainer { $0.setSource(source) } }
      if members["digest"]?.string.flatMap({ BlobDigest($0) }) != nil { members.setContentSource(source) }
      self = .object(members)
    default: break
    }
  }

  /// The sources of the blobs that the value refers to.
  func blobSources() -> [BlobDigest: BlobSource] {
    var sources: [BlobDigest: BlobSource] = [:]
    collectSources(into: &sources, depth: 0)
    return sources
  }

  private func collectSources(into sources: inout [BlobDigest: BlobSource], depth: Int) {
    // A deeper value can't be saved.
    guard depth <= FleeceLimits.depth else { return }
    switch self {
    case .array(let items):
      for item in items where item.isContainer { item.collectSources(into: &sources, depth: depth + 1) }
    case .object(let members):
      if let source = members.blobSource, let digest = members["digest"]?.string.flatMap({ BlobDigest($0) }) {
        sources[digest] = source
      }
      for (_, member) in members where member.isContainer {
        member.collectSources(into: &sources, depth: depth + 1)
      }
    default: break
    }
  }
}

extension DocumentStore {
  /// Runs `write`, which saves `body`. Before that, it stores the new blobs of `body` whose content is known, so
  /// that other writers don't wait for it.
  ///
  /// A batch of this thread has the write transaction already. Its saves store the content inside it.
  func withContent<Result>(of body: DocumentBody, _ write: () throws -> Result) throws -> Result {
    guard JSONObject.anyHasSource.load(ordering: .relaxed), case .value(let value) = body, let blobs,
      !isInBatch
    else { return try write() }
    // These claims keep the blobs until the save has made its own, and end with it.
    var claims: [BlobDigest] = []
    defer { for digest in claims { blobs.discard(digest) } }
    for (digest, source) in value.blobSources() where try !blobs.contains(digest) {
      if try source.store(digest, in: blobs) { claims.append(digest) }
    }
    return try write()
  }
}
