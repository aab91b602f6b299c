import Blobs
import Touchstone

/// Says which blobs are missing, and refuses, so that the status is 1.
enum MissingBlobLines {
  private static let shownLines = 20

  /// Says where blobs are missing, a line each on standard error, and throws a `Refusal` that begins with what was `done`: "the copy
  /// was made". `places` may be cut after `shownLines`.
  static func refuse(
    _ done: String, places: some Sequence<String>, blobs: Int, documents: Int, before: Bool
  ) throws -> Never {
    for (number, place) in places.enumerated() {
      guard number < shownLines else {
        StandardError.line("… and more; touchstone check lists all")
        break
      }
      StandardError.line(place)
    }
    let blobText = blobs == 1 ? "1 blob" : "\(TextTable.grouped(blobs)) blobs"
    let documentText = documents == 1 ? "1 document names" : "\(TextTable.grouped(documents)) documents name"
    let verb = before ? (blobs == 1 ? "was" : "were") : (blobs == 1 ? "is" : "are")
    throw Refusal("\(done), but \(blobText) that \(documentText) \(verb) missing\(before ? " before" : "")")
  }
}

extension ConversionReport {
  /// If blobs are missing, says which, and throws a `Refusal` that begins with what was `done`.
  func checkIsComplete(_ done: String) throws {
    guard !isComplete else { return }
    try MissingBlobLines.refuse(
      done, places: missingBlobs.lazy.map(\.description), blobs: missingBlobCount, documents: documentCount,
      before: true)
  }
}

/// The blobs that documents of JSON lines name and that aren't in the database, by the rule of `touchstone check`.
struct MissingBlobs {
  private typealias Place = (digest: BlobDigest, text: String)

  /// How many documents name these missing blobs.
  private var documents: [Set<BlobDigest>: Int] = [:]
  private var places: [Place] = []
  private static let maximumPlaces = 1_000

  /// Looks for references to `lost` blobs in a document.
  mutating func add(_ lost: Set<BlobDigest>, namedIn line: UnsafeRawBufferPointer, of id: String) {
    // Text can look like a digest without being one.
    guard !lost.isEmpty, let body = try? JSONValue(json: line) else { return }
    var named: Set<BlobDigest> = []
    body.forEachBlobReference { digest, path in
      guard lost.contains(digest) else { return }
      named.insert(digest)
      guard places.count < Self.maximumPlaces else { return }
      places.append((digest, "document '\(id)': the blob \(digest) at \(path) is missing"))
    }
    if !named.isEmpty { documents[named, default: 0] += 1 }
  }

  /// If blobs are missing, says which, and throws a `Refusal` that begins with what was `done`. Those count that `database` lacks
  /// now: a later line may have brought some.
  func checkIsComplete(_ done: String, _ database: Database) throws {
    let lost = try documents.keys.reduce(into: Set()) { $0.formUnion($1) }
      .filter { try !database.contains(Blob(digest: $0, length: 0)) }
    guard !lost.isEmpty else { return }
    try MissingBlobLines.refuse(
      done, places: places.lazy.filter { lost.contains($0.digest) }.map(\.text), blobs: lost.count,
      documents: documents.reduce(0) { $1.key.isDisjoint(with: lost) ? $0 : $0 + $1.value }, before: false)
  }
}

extension JSONValue {
  /// Calls `body` with each reference to a blob, as a check finds them in stored bodies: objects of the type blob at any depth, and
  /// the members of `_attachments` at the top level. `path` is `/photos/3` or `/_attachments/a.png`.
  fileprivate func forEachBlobReference(
    path: String = "", isAttachment: Bool = false, _ body: (_ digest: BlobDigest, _ path: String) -> Void
  ) {
    switch self {
    case .array(let items):
      for (index, item) in items.enumerated() { item.forEachBlobReference(path: "\(path)/\(index)", body) }
    case .object(let members):
      if isAttachment || members["@type"]?.string == "blob",
        let digest = members["digest"]?.string.flatMap({ BlobDigest($0) })
      {
        body(digest, path)
      }
      for (name, value) in members {
        if path.isEmpty, name == "_attachments", case .object(let attachments) = value {
          for (attachment, value) in attachments {
            value.forEachBlobReference(path: "/_attachments/\(attachment)", isAttachment: true, body)
          }
        } else {
          value.forEachBlobReference(path: "\(path)/\(name)", body)
        }
      }
    default: break
    }
  }
}
