import Blobs
import Bytes
import Documents
import Fleece
import HTTP
import Storage
import Touchstone
import Views

/// The body of an answer with documents: text, and attachments that are read when it is written, so that none is in memory as a whole.
struct AnswerPieces: Sendable {
  enum Piece: Sendable {
    /// Text as it is.
    case text([UInt8])
    /// The decoded bytes of an attachment, as base64.
    case base64(StoredAttachment)
    /// The bytes of an attachment as they are stored.
    case stored(StoredAttachment)
  }

  private var pieces: [Piece] = []
  private var text: [UInt8] = []

  /// The length of the text, without attachments.
  var textCount: Int {
    pieces.reduce(text.count) { count, piece in
      if case .text(let text) = piece { count + text.count } else { count }
    }
  }

  /// Appends text.
  mutating func append(_ text: some Sequence<UInt8>) { self.text.append(contentsOf: text) }

  /// Appends text.
  mutating func append(_ text: String) { self.text.append(contentsOf: text.utf8) }

  /// Appends what a writer has.
  mutating func append(_ json: borrowing JSONWriter) { json.write(to: &text) }

  /// Appends a piece.
  mutating func append(_ piece: Piece) {
    flush()
    pieces.append(piece)
  }

  /// Appends what others have.
  mutating func append(_ other: AnswerPieces) {
    for piece in other.pieces {
      if case .text(let more) = piece { text += more } else { append(piece) }
    }
    text += other.text
  }

  private mutating func flush() {
    guard !text.isEmpty else { return }
    pieces.append(.text(text))
    text = []
  }

  /// Writes the pieces, and hands them on.
  func write(to output: AnswerOutput, _ database: Database) throws {
    for piece in pieces { try piece.write(to: output, database) }
    output.append(text)
    try output.step()
  }

  /// The body. Without attachments as base64 its length is known.
  func body(_ database: Database) -> HTTPAnswer.Body {
    if pieces.isEmpty { return .bytes(text) }
    var whole = self
    whole.flush()
    var length: Int? = 0
    for piece in whole.pieces {
      switch piece {
      case .text(let text): length = length.map { $0 + text.count }
      case .stored(let attachment): length = length.map { $0 + Int(clamping: attachment.storedLength) }
      case .base64: length = nil
      }
    }
    return .written(length: length) { [whole] output in try whole.write(to: output, database) }
  }
}

extension AnswerPieces.Piece {
  fileprivate func write(to output: AnswerOutput, _ database: Database) throws {
    switch self {
    case .text(let text):
      output.append(text)
      try output.step()
    case .stored(let attachment):
      try AttachmentReader(database, attachment).readStored {
        output.append([UInt8]($0))
        try output.step()
      }
    case .base64(let attachment):
      // Pieces of base64 have whole groups of three bytes.
      var rest: [UInt8] = []
      var text: [UInt8] = []
      try AttachmentReader(database, attachment).readDecoded { bytes in
        rest.append(contentsOf: bytes)
        let count = rest.count / 3 * 3
        text.removeAll(keepingCapacity: true)
        rest.withUnsafeBytes {
          Base64Decoder.encode(UnsafeRawBufferPointer(rebasing: $0[..<count]), to: &text)
        }
        rest.removeFirst(count)
        output.append(text)
        try output.step()
      }
      text = []
      rest.withUnsafeBytes { Base64Decoder.encode($0, to: &text) }
      output.append(text)
    }
  }
}

/// Reads the bytes of an attachment in pieces, in constant memory.
struct AttachmentReader {
  private static let pieceBytes = 64 << 10
  private let reader: BlobReader
  private let isCompressed: Bool

  /// Throws 404 if its bytes aren't stored.
  init(_ database: Database, _ attachment: StoredAttachment) throws {
    do {
      reader = try database.open(Blob(digest: attachment.digest, length: attachment.length))
    } catch let error as StorageError where error.code == .notFound {
      throw CouchDBError(404, "not_found", "Document is missing attachment")
    }
    isCompressed = attachment.isCompressed
  }

  /// The number of stored bytes.
  var storedLength: UInt64 { reader.length }

  /// Calls `body` with the stored bytes, all or those of a range.
  func readStored(_ range: Range<UInt64>? = nil, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    let range = range ?? 0..<reader.length
    try reader.seek(to: range.lowerBound)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceBytes, alignment: 16)
    defer { buffer.deallocate() }
    var rest = range.upperBound - range.lowerBound
    while rest > 0 {
      let wanted = Int(min(UInt64(buffer.count), rest))
      let count = try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]))
      guard count > 0 else { return }
      rest -= UInt64(count)
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  /// Calls `body` with the decoded bytes.
  func readDecoded(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    guard isCompressed else { return try readStored(nil, body) }
    let decoder = try GzipDecoder()
    do { try readStored { try decoder.decode($0, body) } } catch is GzipDecoder.Malformed {
      throw CouchDBError(500, "internal_server_error", "the attachment isn't compressed as its document says")
    }
  }
}
