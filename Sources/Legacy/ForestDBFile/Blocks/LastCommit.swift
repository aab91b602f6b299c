/// Finds the header of the last commit.
struct LastCommit {
  let header: ForestDBHeader
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
      guard let header = ForestDBHeader(block, block: number) else {
        // A writer that was killed leaves none, so this one was there.
        if ForestDBHeader.likeness(block) != .none { damages.append(Self.damage(number)) }
        continue
      }
      guard header.version == .v2, header.revision == superblock.headerRevision else { continue }
      self.header = try Self.later(than: header, file, superblocks) ?? header
      self.damages = damages + Self.missing(superblocks[0], self.header, damages.count)
      return
    }
    let found = try Self.scan(file, isChained: !superblocks.isEmpty)
    guard let header = found.header else { throw Self.failure(file, found, superblocks) }
    self.header = header
    if let first = superblocks.first {
      self.damages = damages + Self.missing(first, header, damages.count)
    } else {
      self.damages = found.damaged.map { Self.damage($0) }
      if header.version == .v2 {
        self.damages.append(ForestDBDamage(offset: 0, message: "none of the superblocks is valid"))
      }
    }
  }

  /// The writer notes a header before it writes it, so the last one may be missing. More than that were there.
  private static func missing(_ newest: Superblock, _ found: ForestDBHeader, _ known: Int) -> [ForestDBDamage]
  {
    guard newest.headerRevision > found.revision,
      newest.headerRevision - found.revision > UInt64(max(known, 1))
    else { return [] }
    return [
      ForestDBDamage(
        offset: newest.headerBlock &* 4_096,
        message: "the header of commit \(newest.headerRevision) is missing; commit \(found.revision) is read")
    ]
  }

  /// Where a superblock is damaged, it may be the one that named the last commit.
  private static func later(
    than header: ForestDBHeader, _ file: BlockFile, _ superblocks: [Superblock]
  ) throws -> ForestDBHeader? {
    guard superblocks.count < Superblock.count, let last = try scan(file, isChained: true).header,
      last.revision == header.revision &+ 1
    else { return nil }
    return last
  }

  private struct Scan {
    var header: ForestDBHeader?
    /// Blocks behind the header that have been headers.
    var damaged: [Int] = []
    /// Whether one of them is certainly of ForestDB.
    var isCertain = false
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
      var found: [ForestDBHeader] = []
      for number in start..<end {
        let block = try file.block(number)
        if let header = ForestDBHeader(block, block: number) {
          found.append(header)
          continue
        }
        let likeness = ForestDBHeader.likeness(block)
        guard likeness != .none else { continue }
        if ForestDBHeader.isOther(block) {
          scan.other = number
        } else {
          scan.damaged.append(number)
          if likeness == .header { scan.isCertain = true }
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
    if scan.isCertain, let damaged = scan.damaged.first {
      return ForestDBError(
        .damaged, "the only header is damaged", path: file.path, offset: UInt64(damaged) * 4_096)
    }
    return ForestDBError(.keyRequired, "the file is encrypted, or it isn't a ForestDB file", path: file.path)
  }
}
