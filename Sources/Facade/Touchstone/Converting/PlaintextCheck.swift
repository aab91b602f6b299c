import Documents
import Encryption
import FoundationEssentials
import Storage
import StorageEncrypted

#if canImport(Glibc)
  import Glibc
#endif

/// Checks that an encrypted database has no plaintext in its files. Part of a deep check.
///
/// It searches every file of the directory for samples of the database's content. The files of the engine and
/// the blobs have to look random. The directory may hold no other files (docs/encryption.md).
struct PlaintextCheck {
  static let subject = "plaintext search"
  /// Every plain SQLite file begins with this. SQLCipher has its salt there.
  private static let sqliteFormat = "SQLite format 3\0"

  private let directory: DatabaseDirectory
  private let description: DatabaseDirectory.Description
  private let onFile: (FileEntropy) -> Void
  private let found: [File]
  private let leftovers: [String]

  /// A file, named by its path in the directory.
  private struct File {
    enum Kind {
      /// All of its bytes are encrypted.
      case encrypted
      /// It holds no data. Its content is checked elsewhere, or searched like the rest.
      case plain
      /// The database wrote it, and reads it when it is opened.
      case description
      /// It doesn't belong here.
      case other
    }
    let name: String
    let kind: Kind
    /// Whether it is one of the engine's files, which may have locks. These are opened when they are found.
    let isEngines: Bool
    let held: HeldFiles.Held?
  }

  /// Lists the files. They must not be replaced during this call; afterwards they may be.
  init(
    directory: DatabaseDirectory, description: DatabaseDirectory.Description, files: HeldFiles,
    onFile: @escaping (FileEntropy) -> Void
  ) throws {
    self.directory = directory
    self.description = description
    self.onFile = onFile
    found = try Self.list(directory, description, files)
    leftovers = try directory.leftovers(description)
  }

  func run(_ check: IntegrityCheck, _ store: DocumentStore) throws {
    for file in found where file.kind == .other {
      let isLeft = Self.isLeftover(file.name, leftovers)
      try check.report(
        "file \(file.name)",
        isLeft ? "it was left by an interrupted operation" : "it doesn't belong to the database")
    }
    try checkDescription(check)
    let samples = PlaintextSamples()
    samples.begin("the format of a plain file of SQLite", "")
    var format = Self.sqliteFormat
    format.withUTF8 { _ = samples.add(somewhereIn: UnsafeRawBufferPointer($0)) }
    var isFirst = true
    func search() throws {
      for file in found { try self.search(file, for: samples, isFirst: isFirst, store.engine, check) }
      isFirst = false
      samples.removeAll()
    }
    try PlaintextSampling(check, into: samples, whenFull: search).run(blobs: store.blobs)
    if samples.count > 0 || isFirst { try search() }
  }

  // MARK: Files

  private static func list(
    _ directory: DatabaseDirectory, _ description: DatabaseDirectory.Description, _ held: HeldFiles
  ) throws -> [File] {
    var files: [File] = []
    let blobs = description.blobs ?? DatabaseDirectory.blobs
    func add(_ name: String, isKnown: Bool, isSealed: Bool) throws {
      var status = stat()
      guard lstat(directory.file(name), &status) == 0 else { return }
      if status.st_mode & S_IFMT == S_IFDIR {
        for inner in try DatabaseDirectory.contents(of: directory.file(name)) {
          try add("\(name)/\(inner)", isKnown: isKnown, isSealed: isSealed)
        }
        return
      }
      let isEngines = name == description.file || name.hasPrefix(description.file + "-")
      let kind: File.Kind
      if name == "database.json" || name == description.key {
        kind = .description
      } else if name == description.file || name == description.file + "-wal"
        || name == description.file + "-journal"
      {
        kind = .encrypted
      } else if DatabaseDirectory.isLock(name) || isEngines {
        kind = .plain
      } else {
        kind = isKnown && isSealed ? .encrypted : .other
      }
      files.append(
        File(
          name: name, kind: kind, isEngines: isEngines,
          held: isEngines ? try held.file(at: directory.file(name)) : nil))
    }
    for name in try directory.contents() {
      guard name == blobs else {
        try add(name, isKnown: true, isSealed: false)
        continue
      }
      for blob in try DatabaseDirectory.contents(of: directory.file(name)) {
        // Sealed blobs, and blobs that are being written.
        try add(
          "\(name)/\(blob)", isKnown: blob.hasSuffix(".sealed") || blob.hasPrefix("incoming-"), isSealed: true
        )
      }
    }
    return files
  }

  private static func isLeftover(_ name: String, _ leftovers: [String]) -> Bool {
    leftovers.contains { name == $0 || name.hasPrefix($0 + "/") }
  }

  /// Checks that `database.json` has only known members. The key file needs no such check: its checksum
  /// covers all its bytes.
  private func checkDescription(_ check: IntegrityCheck) throws {
    guard let bytes = try? AtomicFile.read(directory.descriptionPath, limit: 1 << 16),
      let value = try? JSONDecoder().decode([String: Member].self, from: Data(bytes))
    else { return }
    for name in value.keys.sorted() where !["version", "engine", "file", "key", "blobs"].contains(name) {
      try check.report("file database.json", "it has the unknown member \"\(name)\"")
    }
  }

  /// Any JSON value.
  private struct Member: Decodable {
    init(from decoder: any Decoder) throws {}
  }

  // MARK: Searching

  private func search(
    _ file: File, for samples: PlaintextSamples, isFirst: Bool, _ engine: any StorageEngine,
    _ check: IntegrityCheck
  ) throws {
    let path = directory.file(file.name)
    guard let descriptor = try file.isEngines ? file.held?.descriptor : opened(path) else { return }
    defer { if !file.isEngines { close(descriptor) } }
    // The content of the description and the key file is known, and a document may contain the same text.
    let looksFor = file.kind == .description ? PlaintextSamples(capacity: 0) : samples
    let type = file.isEngines ? try? Engines.type(EngineName(rawValue: description.engine)) : nil
    let result = try PlaintextSearch.run(
      descriptor, path: path, for: looksFor, isStructure: type?.isStructure
    ) { _ in try check.step() }
    let subject = "file \(file.name)"
    for match in result.matches {
      try check.report(
        subject,
        "\(match.length) bytes at \(match.offset) can be read\(match.isUTF16 ? " as UTF-16" : ""): "
          + "\(match.beginning), of \(match.owner)")
    }
    if result.places > result.matches.count {
      try check.report(subject, "\(result.places - result.matches.count) more samples can be read in it")
    }
    guard isFirst else { return }
    var entropy = result.entropy
    // A page that isn't in use may be a mixture after a power loss, of LMDB's numbers too. It isn't judged. To know which are
    // in use, the engine reads all pages again, so it is asked only when one looks plain.
    if file.name == description.file, let lowest = entropy.lowest, lowest < ByteEntropy.leastOfBlock,
      let isUsed = (engine as? any PageUse).flatMap({ try? $0.pageUse() })
    {
      entropy = try PlaintextSearch.run(
        descriptor, path: path, for: PlaintextSamples(capacity: 0),
        isStructure: { page, offset in
          type?.isStructure?(page, offset) ?? false || !isUsed(offset / ByteEntropy.blockBytes)
        }
      ) { _ in try check.step() }.entropy
    }
    onFile(
      FileEntropy(
        name: file.name, bytes: Int(entropy.bytes), entropy: entropy.value, lowest: entropy.lowest,
        isPlain: file.kind == .plain || file.kind == .description))
    if file.kind == .encrypted, let lowest = entropy.lowest, lowest < ByteEntropy.leastOfBlock {
      try check.report(
        subject,
        "the \(ByteEntropy.blockBytes) bytes at \(entropy.lowestOffset) aren't encrypted: their entropy is "
          + "\((lowest * 100).rounded() / 100) bits per byte")
    }
  }

  private func opened(_ path: String) throws -> Int32? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    if descriptor >= 0 { return descriptor }
    // It may have been removed meanwhile. A symbolic link isn't followed: it can't lead to a file of the
    // database.
    guard errno == ENOENT || errno == ELOOP || errno == ENXIO else {
      throw StorageError.system(errno, "can't open", path)
    }
    return nil
  }
}
