import Blobs
import Encryption
import Fleece
import Storage

/// Takes samples of all that a snapshot holds, as an engine that doesn't encrypt would have it in its file: of each
/// document, its ID, some of its strings and property names, and a piece of its revision tree; of bodies kept aside;
/// local documents; names of properties, indexes and keyspaces; the entries of indexes; and blobs.
public struct PlaintextSampling {
  /// Another string of a body for each so many bytes, beyond the first four.
  private static let bytesPerString = 2_048
  private static let mostStrings = 64

  private let check: IntegrityCheck
  private let samples: PlaintextSamples
  private let whenFull: () throws -> Void

  /// Samples of the snapshot of `check` go into `samples`. `whenFull` is called when there are many: it looks for them
  /// and takes them out.
  public init(_ check: IntegrityCheck, into samples: PlaintextSamples, whenFull: @escaping () throws -> Void)
  {
    self.check = check
    self.samples = samples
    self.whenFull = whenFull
  }

  /// Takes them all.
  public func run(blobs: BlobStore?) throws {
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
        // Nothing but IDs, which are sampled where the documents are.
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

  /// The names that bodies share.
  private func addPropertyNames(_ meta: Keyspace) {
    // Those that can't be read are a fault that is found elsewhere.
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

  /// Some of a body's strings and names, chosen with the same chance each.
  private func addStrings(of body: RawSpan) {
    guard let root = Value(rootOf: body) else { return }
    var chosen: [UnsafeRawBufferPointer] = []
    let wanted = min(4 + body.byteCount / Self.bytesPerString, Self.mostStrings)
    chosen.reserveCapacity(wanted)
    var seen: UInt64 = 0
    // The pieces are used up before `body` ends.
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

  /// Calls `body` with each string, name and piece of data that is long enough to be looked for.
  private static func forEachString(
    in value: UnsafeValue, depth: Int, _ body: (UnsafeRawBufferPointer) -> Void
  ) {
    func take(_ bytes: UnsafeRawBufferPointer?) {
      if let bytes, bytes.count >= PlaintextSamples.leastBytes { body(bytes) }
    }
    // Bytes that nobody checked may be deeper than any body.
    guard depth < 512 else { return }
    switch value.type {
    case .string: take(value.utf8)
    case .data: take(value.data)
    case .array: for item in value.items { forEachString(in: item, depth: depth + 1, body) }
    case .dict:
      for entry in value.entries {
        // One that is shared is a number here, and stands in the meta data.
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
      // One that can't be read is a fault that is found where blobs are checked.
      try? blobs.forEachPiece(of: file.name, bytes: 256) { samples.add(somewhereIn: $0) }
      if samples.isFull { try whenFull() }
    }
  }
}
