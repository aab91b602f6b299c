/// A data set in memory, for workloads that read it many times. The IDs and the JSON of all documents are in
/// one block of memory.
package final class LoadedDataset: @unchecked Sendable {
  // Only `load` writes these, before it returns the object.
  private var storage: UnsafeMutableRawBufferPointer
  private var used = 0
  private var spans: [(id: Range<Int>, json: Range<Int>)] = []
  /// The lines of the documents in their file; empty for generated ones.
  private var lines: [UInt32] = []
  /// The file; nil for generated documents.
  private let path: String?

  /// The name of the data set or the file.
  package let name: String
  /// The size of its lines, including newlines and IDs, in bytes.
  package private(set) var jsonBytes = 0
  /// The SHA-256 of those bytes.
  package private(set) var sha256 = ""

  /// The number of documents.
  package var count: Int { spans.count }

  private init(name: String, path: String? = nil) {
    self.name = name
    self.path = path
    storage = .allocate(byteCount: 1 << 20, alignment: 16)
  }

  deinit { storage.deallocate() }

  /// The ID of a document. A document without an ID has `row-` and its number. Valid as long as this object.
  package func id(_ index: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: storage[spans[index].id])
  }

  /// The JSON of a document without its ID. Valid as long as this object.
  package func json(_ index: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: storage[spans[index].json])
  }

  /// Loads a data set by its name in the manifest, or a file of JSON lines by its path.
  ///
  /// `documents` is the number of documents. Generated data sets can have any number. From others that many
  /// are taken, evenly spread, or all if there are fewer. `seed` is used only by generated data sets. `name`
  /// is the name of a data set from a file. `idProperty` is the property of a file's lines with the ID, of which at least one line
  /// must have it; if it is nil, that is `_id`, and lines may lack it. A complete data set of the manifest is compared with its
  /// checksum. Throws `DatasetError`.
  package static func load(
    _ nameOrPath: String, documents: Int? = nil, seed: UInt64 = SyntheticTravel.defaultSeed,
    environment: DataDirectory = .fromEnvironment, as name: String? = nil, idProperty: String? = nil
  ) throws -> LoadedDataset {
    if let documents, documents < 1 {
      throw DatasetError(.invalidArgument, "a data set can't have \(documents) documents")
    }
    let known = KnownDatasets.dataset(named: nameOrPath)
    if let known, case .generated = known.origin {
      return try generate(documents ?? known.documents, seed: seed)
    }
    let path = try DatasetLookup.path(of: nameOrPath, environment: environment)
    let loaded = try read(path, name: name ?? nameOrPath, documents: documents, idProperty: idProperty)
    if let known, loaded.count == known.documents, loaded.sha256 != known.sha256 {
      throw DatasetError(
        .corrupt, "the file has the SHA-256 \(loaded.sha256), but \(known.name) has \(known.sha256)",
        path: path)
    }
    return loaded
  }

  private static func generate(_ documents: Int, seed: UInt64) throws -> LoadedDataset {
    let loaded = LoadedDataset(name: KnownDatasets.syntheticTravel.name)
    let source = try SyntheticTravel(documentCount: documents, seed: seed)
    let digest = Digest()
    while let line = source.nextLine() {
      loaded.note(line, digest)
      // Removing the ID changes the line, so this follows the digest.
      if let record = source.currentRecord { loaded.append(record) }
    }
    loaded.sha256 = digest.finish()
    return loaded
  }

  private static func read(_ path: String, name: String, documents: Int?, idProperty: String?) throws
    -> LoadedDataset
  {
    let total = try documents.map { _ in try countLines(path) } ?? 0
    let loaded = LoadedDataset(name: name, path: path)
    let digest = Digest()
    let source = try JSONLinesSource(path: path, idProperty: idProperty ?? "_id")
    var hasIDs = false
    var index = 0
    var isWanted = true
    source.lineObserver = { line in
      // Takes lines evenly: line `index` is taken if the number of lines wanted up to it grows there.
      if let documents, documents < total {
        isWanted = (index + 1) * documents / total > index * documents / total
      }
      if isWanted { loaded.note(line, digest) }
      index += 1
    }
    while let record = try source.next() {
      guard isWanted else { continue }
      if record.id != nil { hasIDs = true }
      loaded.append(record)
      loaded.lines.append(UInt32(clamping: source.lineNumber))
    }
    loaded.sha256 = digest.finish()
    guard loaded.count > 0 else {
      throw DatasetError(
        .empty, "there are no documents; a data set needs at least one line with a JSON object", path: path)
    }
    if let idProperty, !hasIDs {
      throw DatasetError(
        .badLine, "no line has the property '\(idProperty)'; name the property with the ID of a document",
        path: path)
    }
    try loaded.checkIDs(property: idProperty ?? "_id")
    return loaded
  }

  /// Throws `duplicateID` if two documents have the same ID.
  private func checkIDs(property: String) throws {
    // The first document with each hash, and the others, which are few.
    var first: [Int: UInt32] = [:]
    first.reserveCapacity(count)
    var others: [Int: [Int]] = [:]
    for index in spans.indices {
      var hasher = Hasher()
      hasher.combine(bytes: id(index))
      let hash = hasher.finalize()
      guard let earlier = first[hash] else {
        first[hash] = UInt32(index)
        continue
      }
      for earlier in [Int(earlier)] + others[hash, default: []] where id(earlier).elementsEqual(id(index)) {
        throw DatasetError(
          .duplicateID,
          "the document has the ID \(String(decoding: id(index).prefix(300), as: UTF8.self)) of line "
            + "\(line(earlier) ?? 0); give each document its own \(property)", path: path, line: line(index))
      }
      others[hash, default: []].append(index)
    }
  }

  /// The line of a document in its file, from 1; nil for generated documents.
  package func line(_ index: Int) -> Int? { lines.indices.contains(index) ? Int(lines[index]) : nil }

  /// An error about a document: its file, its line and what was found.
  package func fault(_ index: Int, _ message: String) -> DatasetError {
    DatasetError(.badLine, message, path: path ?? name, line: line(index))
  }

  private static func countLines(_ path: String) throws -> Int {
    let reader = try LineReader(path: path)
    var count = 0
    while try reader.next() != nil { count += 1 }
    return count
  }

  private func note(_ line: UnsafeRawBufferPointer, _ digest: Digest) {
    jsonBytes += line.count + 1
    digest.update(line)
    withUnsafeBytes(of: 0x0A as UInt8) { digest.update($0) }
  }

  private func append(_ record: Record) {
    let id = record.id.map { hold($0) } ?? Array("row-\(spans.count + 1)".utf8).withUnsafeBytes { hold($0) }
    spans.append((id: id, json: hold(record.json)))
  }

  private func hold(_ bytes: UnsafeRawBufferPointer) -> Range<Int> {
    if used + bytes.count > storage.count {
      let larger = UnsafeMutableRawBufferPointer.allocate(
        byteCount: max(storage.count * 2, used + bytes.count), alignment: 16)
      larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[..<used]))
      storage.deallocate()
      storage = larger
    }
    let range = used..<used + bytes.count
    UnsafeMutableRawBufferPointer(rebasing: storage[range]).copyMemory(from: bytes)
    used = range.upperBound
    return range
  }
}
