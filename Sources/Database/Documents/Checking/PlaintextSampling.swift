import Blobs
import Encryption
import Fleece
import Storage

/// Takes samples of everything in a snapshot, in the form in which an engine without encryption would write
/// it to its file.
///
/// The samples cover each document's ID, some of its strings and property names, and a part of its revision
/// tree. They also cover separately stored bodies, local documents, names of properties, indexes and
/// keyspaces, entries of indexes, and blobs.
package struct PlaintextSampling {
  /// One more string of a body is sampled per this number of bytes, beyond the first four.
  private static let bytesPerString = 2_048
  private static let mostStrings = 64

  private let check: IntegrityCheck
  private let samples: PlaintextSamples
  private let whenFull: () throws -> Void

  /// Creates a sampling of the snapshot of `check` into `samples`. `whenFull` is called when `samples` is
  /// full. It searches for the samples and removes them.
  package init(_ check: IntegrityCheck, into samples: PlaintextSamples, whenFull: @escaping () throws -> Void)
  {
    self.check = check
    self.samples = samples
    self.whenFull = whenFull
  }

  /// Takes all samples.
  package func run(blobs: BlobStore?) throws {
    let transaction = check.transaction
    for (name, keyspace) in try transaction.keyspaces().sorted(by: { $0.key < $1.key }) {
      add(name, as: "the name of a keyspace,")
      switch name {
      case "docs", "deleted":
        try each(of: keyspace) { addDocument($0, $1) }
      case "bodies", "conflicts":
        try each(of: keyspace) { key, value in
          samples.begin("a body in the keyspace", name)
          if let body = try? BodyRecord(value.bytes) { addStrings(of: body.body) }
        }
      case "meta":
        addPropertyNames(keyspace)
        try each(of: keyspace) { key, value in
          samples.begin("meta data", key)
          samples.add(somewhereIn: key)
          samples.add(allOf: value, limit: 256)
        }
      case DocumentStore.localKeyspace:
        try each(of: keyspace) { key, value in
          samples.begin("local document", key)
          samples.add(endOf: key)
          for _ in 0..<4 { samples.add(somewhereIn: value) }
        }
      case "changes", "expiry", "expirations":
        // These contain only IDs, which are sampled with the documents.
        break
      default:
        try each(of: keyspace) { key, value in
          samples.begin("an entry of the keyspace", name)
          samples.add(somewhereIn: key)
          samples.add(somewhereIn: value)
        }
      }
    }
    if let blobs { try addBlobs(blobs) }
  }

  private func add(_ name: String, as kind: String) {
    samples.begin(kind, name)
    var name = name
    name.withUTF8 { _ = samples.add(endOf: UnsafeRawBufferPointer($0)) }
  }

  /// Adds the names of the shared keys.
  private func addPropertyNames(_ meta: Keyspace) {
    // Unreadable shared keys are a fault that the check reports elsewhere.
    guard let names = try? DocumentStore.loadSharedKeys(check.transaction, meta) else { return }
    for number in 0..<names.count {
      if let name = names.name(of: number) { add(name, as: "the property") }
    }
  }

  private func each(
    of keyspace: Keyspace, _ body: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Void
  ) throws {
    try check.transaction.scan(keyspace, order: .stored) { key, value in
      try check.step()
      try key.withUnsafeBytes { key in try value.withUnsafeBytes { try body(key, $0) } }
      if samples.isFull { try whenFull() }
      return true
    }
  }

  // MARK: Documents

  private func addDocument(_ id: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    samples.begin("document", id)
    samples.add(endOf: id)
    guard let record = try? DocumentRecord(value.bytes) else {
      samples.add(somewhereIn: value)
      return
    }
    record.tree.withUnsafeBytes { _ = samples.add(somewhereIn: $0) }
    addStrings(of: record.body)
  }

  /// Adds some of a body's strings and names, chosen at random with equal probability.
  private func addStrings(of body: RawSpan) {
    guard let root = Value(rootOf: body) else { return }
    var chosen: [UnsafeRawBufferPointer] = []
    let wanted = min(4 + body.byteCount / Self.bytesPerString, Self.mostStrings)
    chosen.reserveCapacity(wanted)
    var seen: UInt64 = 0
    // The pointers are used only while `body` is valid.
    Self.forEachString(in: root.unsafeValue, depth: 0) { text in
      seen += 1
      if chosen.count < wanted {
        chosen.append(text)
      } else {
        let place = samples.next() % seen
        if place < UInt64(wanted) { chosen[Int(place)] = text }
      }
    }
    for text in chosen { samples.add(somewhereIn: text) }
  }

  /// Calls `body` with each string, name and piece of binary data that is long enough for a sample.
  private static func forEachString(
    in value: UnsafeValue, depth: Int, _ body: (UnsafeRawBufferPointer) -> Void
  ) {
    func take(_ bytes: UnsafeRawBufferPointer?) {
      if let bytes, bytes.count >= PlaintextSamples.leastBytes { body(bytes) }
    }
    // Unvalidated bytes may be nested deeper than any valid body.
    guard depth < 512 else { return }
    switch value.type {
    case .string: take(value.utf8)
    case .data: take(value.data)
    case .array: for item in value.items { forEachString(in: item, depth: depth + 1, body) }
    case .dict:
      for entry in value.entries {
        // A shared key is a number here. Its name is sampled in `meta`.
        take(entry.key.utf8)
        forEachString(in: entry.value, depth: depth + 1, body)
      }
    default: break
    }
  }

  // MARK: Blobs

  private func addBlobs(_ blobs: BlobStore) throws {
    for file in try blobs.files().sorted(by: { $0.name < $1.name }) {
      try check.step()
      samples.begin("the blob in", file.name)
      // An unreadable blob is a fault that the blob check reports.
      try? blobs.forEachPiece(of: file.name, bytes: 256) { samples.add(somewhereIn: $0) }
      if samples.isFull { try whenFull() }
    }
  }
}
