/// What the maps of a batch emitted.
package struct ScriptRows: Sendable {
  /// The number of documents.
  package private(set) var documentCount = 0
  /// The number of views that mapped them.
  package let viewCount: Int

  private var frames: [[UInt8]] = []
  // Of each document and view, where its rows begin.
  private var places: [(frame: Int32, offset: Int32)] = []

  init(viewCount: Int) { self.viewCount = viewCount }

  /// Lends the rows of a document and view, in the order in which they were emitted. When `isDocument`, the value is
  /// the document itself, and `value` is empty. Both are JSON. They are valid until `body` returns. There is none
  /// when the map threw.
  package func forEachRow(
    document: Int, view: Int, _ body: (_ key: RawSpan, _ value: RawSpan, _ isDocument: Bool) throws -> Void
  ) throws {
    try withPlace(document, view) { cursor in
      guard try cursor.u8() == 0 else { return }
      for _ in 0..<(try cursor.u32()) {
        let isDocument = try cursor.u8() == 1
        let key = try cursor.text()
        try body(key.bytes, try cursor.text().bytes, isDocument)
      }
    }
  }

  /// The number of rows of a document and view.
  package func rowCount(document: Int, view: Int) -> Int {
    (try? withPlace(document, view) { try $0.u8() == 0 ? Int(try $0.u32()) : 0 }) ?? 0
  }

  /// What the map threw; nil when it returned.
  package func exception(document: Int, view: Int) -> String? {
    try? withPlace(document, view) { try $0.u8() == 1 ? try $0.string() : nil }
  }

  /// What the map logged: 64 lines at most.
  package func log(document: Int, view: Int) -> [String] {
    let lines = try? withPlace(document, view) { cursor in
      try ScriptRows.skipRows(&cursor)
      var lines: [String] = []
      for _ in 0..<(try cursor.u16()) { lines.append(try cursor.string()) }
      return lines
    }
    return lines ?? []
  }

  private func withPlace<Result>(
    _ document: Int, _ view: Int, _ body: (inout FrameCursor) throws -> Result
  ) throws -> Result {
    let place = places[document * viewCount + view]
    return try frames[Int(place.frame)].withUnsafeBytes {
      var cursor = FrameCursor($0, at: Int(place.offset))
      return try body(&cursor)
    }
  }

  /// Appends what the maps of the documents that follow emitted.
  mutating func append(_ rows: ScriptRows) {
    let first = Int32(frames.count)
    frames += rows.frames
    places += rows.places.map { ($0.frame + first, $0.offset) }
    documentCount += rows.documentCount
  }

  /// Checks a frame of rows and takes it. The documents of the frame follow those that are there.
  mutating func append(_ frame: AnswerFrame) throws {
    var found: [(frame: Int32, offset: Int32)] = []
    var count = 0
    try frame.withPayload { cursor in
      guard Int(try cursor.u32()) == documentCount else { throw FrameFault() }
      count = Int(try cursor.u32())
      for _ in 0..<count {
        for _ in 0..<viewCount {
          found.append((Int32(frames.count), Int32(cursor.offset)))
          try ScriptRows.skipRows(&cursor)
          for _ in 0..<(try cursor.u16()) { _ = try cursor.text() }
        }
        // A frame of no views has no bytes for its documents, and isn't asked for.
        if cursor.isAtEnd && viewCount == 0 { throw FrameFault() }
      }
    }
    places += found
    frames.append(frame.bytes)
    documentCount += count
  }

  private static func skipRows(_ cursor: inout FrameCursor) throws {
    switch try cursor.u8() {
    case 0:
      for _ in 0..<(try cursor.u32()) {
        guard try cursor.u8() <= 1 else { throw FrameFault() }
        _ = try cursor.text()
        _ = try cursor.text()
      }
    case 1: _ = try cursor.text()
    default: throw FrameFault()
    }
  }
}
