/// Finds the header of the last commit.
struct LastCommit {
  let header: FileHeader
  /// Headers that are damaged, where an earlier one was taken for them.
  var damages: [ForestDBDamage] = []

  /// Throws if there is none: `unsupported`, `damaged`, or `keyRequired` if no block is recognised.
  init(_ file: BlockFile) throws {
    var superblocks: [Superblock] = []
    for number in 0..<min(Superblock.count, file.count) {
      if let found = Superblock(try file.block(number)) { superblocks.append(found) }
    }
    superblocks.sort { $0.revision > $1.revision }
    var damages: [ForestDBDamage] = []
    for superblock in superblocks {
      guard superblock.headerBlock < UInt64(file.count) else { continue }
      let number = Int(superblock.headerBlock)
      let block = try file.block(number)
      guard let header = FileHeader(block, block: number) else {
        // A writer that was killed leaves none, so this one was there.
        if FileHeader.isLike(block) { damages.append(Self.damage(number)) }
        continue
      }
      guard header.version == .v2, header.revision == superblock.headerRevision else { continue }
      self.header = header
      self.damages = damages
      return
    }
    let found = try Self.scan(file, isChained: !superblocks.isEmpty)
    guard let header = found.header else { throw Self.failure(file, found, superblocks) }
    self.header = header
    if let first = superblocks.first {
      // The writer notes a header before it writes it, so one may be missing.
      if header.revision &+ 1 < first.headerRevision {
        damages.append(
          ForestDBDamage(
            offset: first.headerBlock &* 4_096,
            message:
              "the header of commit \(first.headerRevision) is missing; commit \(header.revision) is read"))
      }
      self.damages = damages
    } else {
      self.damages = found.damaged.map { Self.damage($0) }
      if header.version == .v2 {
        self.damages.append(ForestDBDamage(offset: 0, message: "none of the superblocks is valid"))
      }
    }
  }

  private struct Scan {
    var header: FileHeader?
    /// Blocks behind the header that have been headers.
    var damaged: [Int] = []
    var other: Int?
  }

  /// Looks for headers from the end of the file on. In a file that only grows the first one counts, otherwise
  /// the one with the highest revision.
  private static func scan(_ file: BlockFile, isChained: Bool) throws -> Scan {
    var scan = Scan()
    let run = 32
    var end = file.count
    while end > 0 {
      // In runs, so that blocks are read in order.
      let start = max(0, end - run)
      var found: [FileHeader] = []
      for number in start..<end {
        let block = try file.block(number)
        if let header = FileHeader(block, block: number) {
          found.append(header)
        } else if FileHeader.isLike(block) {
          if FileHeader.isOther(block) { scan.other = number } else { scan.damaged.append(number) }
        }
      }
      for header in found.reversed() where !isChained || header.version == .v2 {
        if scan.header.map({ header.revision > $0.revision }) ?? true { scan.header = header }
        if header.version == .v1 { break }
      }
      if let header = scan.header, header.version == .v1 {
        scan.damaged.removeAll { $0 < header.block }
        return scan
      }
      // The list is only for people.
      if scan.damaged.count > 1_000 { scan.damaged.removeFirst(scan.damaged.count - 1_000) }
      end = start
    }
    return scan
  }

  private static func damage(_ block: Int) -> ForestDBDamage {
    ForestDBDamage(
      offset: UInt64(block) * 4_096,
      message: "the header of the last commit is damaged; the commit before it is read")
  }

  private static func failure(_ file: BlockFile, _ scan: Scan, _ superblocks: [Superblock]) -> ForestDBError {
    if let other = scan.other {
      return ForestDBError(
        .unsupported, "the file is of a version of ForestDB that isn't read", path: file.path,
        offset: UInt64(other) * 4_096)
    }
    if let first = superblocks.first {
      let end = first.headerBlock >= UInt64(file.count)
      return ForestDBError(
        end ? .truncated : .damaged,
        end
          ? "the file was cut off: the headers of its commits are missing"
          : "the headers of its commits are damaged",
        path: file.path, offset: min(first.headerBlock, UInt64(file.count)) * 4_096)
    }
    if let damaged = scan.damaged.first {
      return ForestDBError(
        .damaged, "the only header is damaged", path: file.path, offset: UInt64(damaged) * 4_096)
    }
    return ForestDBError(.keyRequired, "the file is encrypted, or it isn't a ForestDB file", path: file.path)
  }
}
