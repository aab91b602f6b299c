import Bytes
import CCrypto
import Fleece
import Foundation
import HTTP
import Storage

/// One database of CouchDB as far as replicators see it: revision trees, attachments, changes, local documents. It complains about requests
/// that CouchDB wouldn't take.
final class CouchModel: Sendable {
  struct Attachment: Sendable, Equatable {
    var name: String
    var contentType: String
    var revpos: UInt64
    /// The stored bytes, and the length of what they decode to.
    var bytes: [UInt8]
    var length: Int
    var isCompressed: Bool

    var plainBytes: [UInt8] { isCompressed ? (try? Gzip.decoded(bytes)) ?? [] : bytes }
  }

  struct Revision: Sendable {
    var history: [String]
    var isDeleted: Bool
    var body: JSONObject
    var attachments: [Attachment]
    var id: String { history[0] }
  }

  struct Document: Sendable {
    /// Each known revision's parent.
    var parents: [String: String?] = [:]
    var revisions: [String: Revision] = [:]
    var sequence = 0

    var leaves: [String] {
      let inner = Set(parents.values.compactMap { $0 })
      return revisions.keys.filter { !inner.contains($0) }.sorted { first, second in
        let (a, b) = (revisions[first]?.isDeleted ?? false, revisions[second]?.isDeleted ?? false)
        if a != b { return !a }
        let (x, y) = (CouchModel.generation(first), CouchModel.generation(second))
        return x != y ? x > y : first > second
      }
    }
  }

  /// What the server, or a proxy before it, does with the encoding of attachments.
  enum Encoding: Sendable, CaseIterable {
    case asCouchDB
    /// It doesn't know `att_encoding_info`: documents don't say what is stored as gzip, whose MD5 they have.
    case isUntold
    /// All attachments come as gzip, whether that was asked for or not.
    case always
    /// None does.
    case never
  }

  struct State: Sendable {
    var encoding = Encoding.asCouchDB
    var exists = true
    /// How often it was made.
    var instance = 1
    /// Whether the server says which one it is: CouchDB 2.0 to 3.2 don't.
    var tellsInstance = true
    /// Whether sequences are plain numbers, as in PouchDB's server.
    var givesNumbers = false
    var documents: [String: Document] = [:]
    var sequence = 0
    var locals: [String: JSONObject] = [:]
    var complaints: [String] = []
    /// The server has no such endpoints.
    var missing: [String: Int] = [:]
    /// Documents that validation refuses, by the start of their IDs, with the error.
    var refused: [String: String] = [:]
    var takesMultipart = true
    /// Whether `open_revs` is answered as multipart/mixed to those who want that.
    var givesMultipart = true
    /// Whether `_bulk_get` is answered as multipart/mixed.
    var givesMixedBulk = false
    var maximumBytes = Int.max
    var maximumIDBytes = Int.max
    var maximumAttachmentBytes = Int.max
    /// How many revisions of a branch are remembered.
    var revisionLimit = Int.max
    /// The endpoint answers so many times with 429 first.
    var busy = 0
    var isClosed = false
  }

  let name: String
  let state = Lock(State())

  init(_ name: String) { self.name = name }

  static func generation(_ revision: String) -> Int { Int(revision.prefix { $0 != "-" }) ?? 0 }

  var complaints: [String] { state.withLock { $0.complaints } }

  /// Adds a revision that was made elsewhere. Returns false if it is known.
  @discardableResult
  func add(_ id: String, _ revision: Revision) -> Bool {
    state.withLock { state in
      var document = state.documents[id] ?? Document()
      guard document.revisions[revision.id] == nil else { return false }
      for (index, known) in revision.history.enumerated() {
        let parent = index + 1 < revision.history.count ? revision.history[index + 1] : nil
        if document.parents[known].flatMap({ $0 }) == nil { document.parents[known] = parent }
      }
      document.revisions[revision.id] = revision
      for forgotten in revision.history.dropFirst(state.revisionLimit) {
        document.parents[forgotten] = nil
        document.revisions[forgotten] = nil
      }
      state.sequence += 1
      document.sequence = state.sequence
      state.documents[id] = document
      return true
    }
  }

  /// Deletes the database and makes it again.
  func remake() {
    state.withLock { state in
      state.instance += 1
      (state.documents, state.locals, state.sequence) = ([:], [:], 0)
    }
  }

  /// All leaves with their bodies, and the decoded bytes of their attachments.
  var contents: [String: [String]] {
    state.withLock { state in
      state.documents.mapValues { document in
        document.leaves.compactMap { document.revisions[$0] }.map { revision in
          let body = (try? JSONValue.object(revision.body).canonicalJSON()) ?? "?"
          let attachments = revision.attachments.sorted { $0.name < $1.name }.map { attachment in
            " \(attachment.name) \(attachment.contentType) \(attachment.length) \(MD5.text(attachment.bytes))"
          }
          return "\(revision.id)\(revision.isDeleted ? " deleted" : "") \(body)\(attachments.joined())"
        }.sorted()
      }
    }
  }
}

/// The MD5 of bytes.
enum MD5 {
  static func text(_ bytes: [UInt8]) -> String {
    var digest = [UInt8](repeating: 0, count: 16)
    EVP_Digest(bytes, bytes.count, &digest, nil, EVP_md5(), nil)
    return "md5-" + Data(digest).base64EncodedString()
  }
}

/// An attachment that isn't compressed.
func attachment(_ name: String, _ bytes: [UInt8], revpos: UInt64 = 1) -> CouchModel.Attachment {
  .init(
    name: name, contentType: "image/png", revpos: revpos, bytes: bytes, length: bytes.count,
    isCompressed: false)
}
