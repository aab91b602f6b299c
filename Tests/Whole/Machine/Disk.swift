import Foundation
import Simulation
import StorageConformance
import SystemCalls

/// A disk below one folder, as recorded calls change it: what is synced, and what a power cut may take away.
///
/// A sync of a file makes its bytes safe, and not its name. A sync of a folder makes the names in it safe. After a
/// failed sync the system may drop what was written and call it clean: later syncs don't bring it to the disk.
struct Disk {
  static let sector = 512
  static let page = 4096

  /// A change of a file since its last sync.
  private struct Change {
    enum Kind { case write, size }
    let kind: Kind
    let offset: Int
    let bytes: UnsafeBufferPointer<UInt8>
    /// By a descriptor whose writes are synced.
    let isSynced: Bool
  }

  /// A change of a name since the last sync of its folder. Both of a rename have one order.
  private struct NameChange {
    let order: Int
    let name: String
    let node: Int?
  }

  private struct Node {
    var bytes: [UInt8] = []
    var changes: [Change] = []
    /// Nil for files.
    var names: [String: Int]?
    var liveNames: [String: Int] = [:]
    var nameChanges: [NameChange] = []
  }

  private var nodes: [Node] = [Node(names: [:])]
  /// By inode.
  private var numbers: [UInt64: Int] = [:]
  private var order = 0
  private let root: String

  /// An empty disk, of a folder and its inode.
  init(root: String, inode: UInt64) {
    self.root = root
    numbers[inode] = 0
  }

  // MARK: Calls

  /// Follows a call. `fate` decides what becomes of writes whose sync fails.
  mutating func follow(_ call: recorded_call, fate: inout SeededGenerator) throws {
    let path = call.path.map { String(cString: $0) }
    let other = call.other.map { String(cString: $0) }
    switch recorded_kind(UInt32(call.kind)) {
    case RECORDED_FILE: try add(Node(), path, call.number)
    case RECORDED_FOLDER: try add(Node(names: [:]), path, call.number)
    case RECORDED_WRITE, RECORDED_SYNCED_WRITE:
      guard let node = numbers[call.number] else { return }
      nodes[node].changes.append(
        Change(
          kind: .write, offset: Int(call.offset),
          bytes: UnsafeBufferPointer(start: call.bytes, count: call.count),
          isSynced: recorded_kind(UInt32(call.kind)) == RECORDED_SYNCED_WRITE))
    case RECORDED_SIZE:
      guard let node = numbers[call.number] else { return }
      nodes[node].changes.append(
        Change(
          kind: .size, offset: Int(call.offset), bytes: UnsafeBufferPointer(start: nil, count: 0),
          isSynced: false))
    case RECORDED_SYNC: numbers[call.number].map { sync($0) }
    case RECORDED_SYNC_ALL: for node in nodes.indices { sync(node) }
    case RECORDED_FAILED_SYNC:
      guard let node = numbers[call.number], nodes[node].names == nil else { return }
      nodes[node].bytes = bytes(of: node, fate.once(in: 2) ? .none : .sectors(4), &fate)
      nodes[node].changes = []
    case RECORDED_RENAME:
      order += 1
      let moved = try path.flatMap { try live($0) }
      if let path { try change(path, to: nil) }
      if let other { try change(other, to: moved) }
    case RECORDED_LINK:
      order += 1
      if let path, let other { try change(other, to: try live(path)) }
    case RECORDED_UNLINK:
      order += 1
      if let path { try change(path, to: nil) }
    default: throw Mismatch("an unknown call: \(call.kind)")
    }
  }

  private mutating func add(_ node: Node, _ path: String?, _ number: UInt64) throws {
    guard let path else { return }
    order += 1
    nodes.append(node)
    numbers[number] = nodes.count - 1
    try change(path, to: nodes.count - 1)
  }

  private func split(_ path: String) -> [String] {
    // WiredTiger puts "./" before the names of its log.
    path.dropFirst(root.utf8.count).split(separator: "/").filter { $0 != "." }.map(String.init)
  }

  private func live(_ path: String) throws -> Int? {
    var node: Int? = 0
    for name in split(path) { node = node.flatMap { nodes[$0].liveNames[name] } }
    return node
  }

  private mutating func change(_ path: String, to node: Int?) throws {
    let names = split(path)
    guard let last = names.last else { throw Mismatch("the folder itself was changed") }
    guard let folder = try live(root + "/" + names.dropLast().joined(separator: "/")) else {
      throw Mismatch("a change in a folder that isn't there: \(path)")
    }
    nodes[folder].liveNames[last] = node
    nodes[folder].nameChanges.append(NameChange(order: order, name: last, node: node))
  }

  private mutating func sync(_ node: Int) {
    if nodes[node].names != nil {
      nodes[node].names = nodes[node].liveNames
      nodes[node].nameChanges = []
    } else {
      var unused = SeededGenerator(seed: 0)
      nodes[node].bytes = bytes(of: node, .all, &unused)
      nodes[node].changes = []
    }
  }

  // MARK: A loss of power

  /// What is left of a file's changes.
  private enum Rest {
    case none, all
    /// The first so many, and the next one torn.
    case first(Int)
    /// Each sector, or page, of each write with a probability of so many eighths.
    case sectors(Int)
    case pages(Int)

    static func random(_ count: Int, _ random: inout SeededGenerator) -> Rest {
      switch random.below(8) {
      case 0: .none
      case 1: .all
      case 2, 3: .first(random.below(count + 1))
      case 4, 5: .sectors(1 + random.below(7))
      default: .pages(1 + random.below(7))
      }
    }
  }

  private func bytes(of node: Int, _ rest: Rest, _ random: inout SeededGenerator) -> [UInt8] {
    var bytes = nodes[node].bytes
    func write(_ change: Change, _ range: Range<Int>) {
      if bytes.count < range.upperBound {
        bytes.append(contentsOf: repeatElement(0, count: range.upperBound - bytes.count))
      }
      bytes.replaceSubrange(
        range,
        with: change.bytes[(range.lowerBound - change.offset)..<(range.upperBound - change.offset)])
    }
    for (place, change) in nodes[node].changes.enumerated() {
      /// The size of the pieces that are kept or not, and the eighths of those that are.
      var (piece, kept) = (Int.max, 8)
      if !change.isSynced {
        switch rest {
        case .none: kept = 0
        case .all: break
        case .first(let count):
          if place > count { kept = 0 }
          if place == count { (piece, kept) = (Self.sector, 4) }
        case .sectors(let eighths): (piece, kept) = (Self.sector, eighths)
        case .pages(let eighths): (piece, kept) = (Self.page, eighths)
        }
      }
      if kept == 0 { continue }
      switch change.kind {
      case .size:
        guard kept == 8 || random.below(8) < kept else { continue }
        if change.offset < bytes.count {
          bytes.removeLast(bytes.count - change.offset)
        } else {
          bytes.append(contentsOf: repeatElement(0, count: change.offset - bytes.count))
        }
      case .write:
        let end = change.offset + change.bytes.count
        if kept == 8 {
          write(change, change.offset..<end)
          continue
        }
        var start = change.offset
        while start < end {
          let next = min(end, (start / piece + 1) * piece)
          if random.below(8) < kept { write(change, start..<next) }
          start = next
        }
        // The file has grown, but its bytes haven't come.
        if bytes.count < end, random.below(8) < kept {
          bytes.append(contentsOf: repeatElement(0, count: end - bytes.count))
        }
      }
    }
    return bytes
  }

  /// Which changes of names are left, by their order.
  private enum NameRest {
    case none, all
    case first(Int)
    case some(Set<Int>)

    func keeps(_ order: Int) -> Bool {
      switch self {
      case .none: false
      case .all: true
      case .first(let last): order <= last
      case .some(let kept): kept.contains(order)
      }
    }
  }

  /// Writes what a power cut may leave now into an empty folder.
  func cut(into folder: String, _ random: inout SeededGenerator) throws {
    let orders = Set(nodes.flatMap { $0.nameChanges.map(\.order) }).sorted()
    let names: NameRest
    switch random.below(6) {
    case 0: names = .none
    case 1, 2: names = .all
    case 3, 4: names = .first(orders.isEmpty ? 0 : random.pick(orders))
    default:
      var kept: Set<Int> = []
      for order in orders where random.once(in: 2) { kept.insert(order) }
      names = .some(kept)
    }
    // All files fare alike, or each its own way.
    let all: Rest? = random.once(in: 2) ? Rest.random(8, &random) : nil
    try write(0, to: folder, names, all, &random)
  }

  private func write(
    _ node: Int, to folder: String, _ rest: NameRest, _ all: Rest?, _ random: inout SeededGenerator
  ) throws {
    var names = nodes[node].names ?? [:]
    for change in nodes[node].nameChanges where rest.keeps(change.order) {
      names[change.name] = change.node
    }
    for (name, inner) in names.sorted(by: { $0.key < $1.key }) {
      let path = folder + "/" + name
      if nodes[inner].names != nil {
        guard mkdir(path, 0o755) == 0 else { throw Mismatch("can't make \(path): \(errno)") }
        try write(inner, to: path, rest, all, &random)
      } else {
        let bytes = bytes(
          of: inner, all ?? Rest.random(nodes[inner].changes.count, &random), &random)
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Mismatch("can't make \(path): \(errno)") }
        defer { close(descriptor) }
        let written = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        guard written == bytes.count else { throw Mismatch("can't write \(path): \(errno)") }
      }
    }
  }
}
