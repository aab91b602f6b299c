import Touchstone

/// The rules of docs/documents.md in plain dictionaries, written without a look at how the store does it.
struct ReferenceModel {
  struct Refused: Error {
    let code: DocumentError.Code
  }

  struct Node: Equatable {
    var generation: Int
    var suffix: String
    var parent: String?
    var isDeleted = false
    var sequence: Int
    var body: JSONValue?
  }

  struct Entry {
    var sequence = 0
    var nodes: [String: Node] = [:]

    func isLeaf(_ id: String) -> Bool { !nodes.values.contains { $0.parent == id } }

    /// Leaves first by priority, then the rest: live, then high generation, then high suffix.
    var ordered: [String] {
      let leaves = Set(nodes.keys.filter(isLeaf))
      return nodes.keys.sorted { a, b in
        let (left, right) = (leaves.contains(a), leaves.contains(b))
        if left != right { return left }
        let (x, y) = (nodes[a]!, nodes[b]!)
        if left, x.isDeleted != y.isDeleted { return y.isDeleted }
        if x.generation != y.generation { return x.generation > y.generation }
        return Array(y.suffix.utf8).lexicographicallyPrecedes(Array(x.suffix.utf8))
      }
    }
    var current: String { ordered[0] }
    var isDeleted: Bool { nodes[current]!.isDeleted }
    var isConflicted: Bool { nodes.keys.filter { isLeaf($0) && !nodes[$0]!.isDeleted }.count > 1 }
  }

  var depth: Int
  var keepsReplacedBodies: Bool
  var lastSequence = 0
  var documents: [String: Entry] = [:]

  /// What `save` (or, with `deleting`, `delete`) makes: the new revision's ID.
  mutating func save(
    _ id: String, _ body: JSONValue, canonical: String, base: String?, fails: Bool, deleting: Bool
  ) throws -> String {
    var entry = documents[id] ?? Entry()
    var parent: String?
    if entry.nodes.isEmpty {
      if deleting { throw Refused(code: .notFound) }
      // It was purged since.
      if fails, base != nil { throw Refused(code: .conflict) }
    } else if let base, entry.nodes[base] != nil, entry.isLeaf(base) {
      parent = base
    } else {
      if fails, base != nil { throw Refused(code: .conflict) }
      if deleting, entry.isDeleted { throw Refused(code: .notFound) }
      if fails, !entry.isDeleted { throw Refused(code: .conflict) }
      parent = entry.current
    }
    let generation = parent.map { entry.nodes[$0]!.generation + 1 } ?? 1
    var input = [UInt8(min(parent?.utf8.count ?? 0, 255))]
    input += Array((parent ?? "").utf8.prefix(255))
    input.append(deleting ? 1 : 0)
    let suffix = sha1(input + Array(canonical.utf8))
    let new = "\(generation)-\(suffix)"
    if let known = entry.nodes[new] {
      if known.parent != nil { return new }
      lastSequence += 1
      entry.nodes[new]!.parent = parent
    } else {
      lastSequence += 1
      entry.nodes[new] = Node(
        generation: generation, suffix: suffix, parent: parent, isDeleted: deleting, sequence: lastSequence,
        body: body)
    }
    finish(id, entry)
    return new
  }

  mutating func apply(_ id: String, _ history: [String], deleted: Bool, _ body: JSONValue) throws -> Bool {
    if history.isEmpty { throw Refused(code: .invalidHistory) }
    var entry = documents[id] ?? Entry()
    var unknown: [String] = []
    var ancestor: String?
    for (index, revision) in history.enumerated() {
      if index > 0, generation(revision) >= generation(history[index - 1]) {
        throw Refused(code: .invalidHistory)
      }
      if entry.nodes[revision] != nil {
        ancestor = revision
        break
      }
      unknown.append(revision)
    }
    let extends = ancestor.map { mayLack($0, history, entry) } ?? false
    if unknown.isEmpty {
      if extends { while join(id, history) {} }
      return false
    }
    if ancestor == nil { unknown = Array(unknown.prefix(depth)) }
    lastSequence += 1
    for (index, revision) in unknown.enumerated() {
      entry.nodes[revision] = Node(
        generation: generation(revision), suffix: String(revision.drop { $0 != "-" }.dropFirst()),
        parent: index + 1 < unknown.count ? unknown[index + 1] : ancestor, isDeleted: index == 0 && deleted,
        sequence: lastSequence, body: index == 0 ? Optional(body) : Optional.none)
    }
    finish(id, entry)
    if extends { while join(id, history) {} }
    return true
  }

  /// Whether a history reaches further back than the branch of `ancestor` has every generation. It is asked before pruning.
  private func mayLack(_ ancestor: String, _ history: [String], _ entry: Entry) -> Bool {
    var end = ancestor
    while let parent = entry.nodes[end]!.parent, generation(parent) + 1 == generation(end) { end = parent }
    return generation(history.last!) < generation(end)
  }

  /// Joins the first part of a history that the branch of its newest revision lacks. Returns whether that has joined anything.
  private mutating func join(_ id: String, _ history: [String]) -> Bool {
    let entry = documents[id]!
    // Pruning may have taken it meanwhile.
    guard entry.nodes[history[0]] != nil else { return false }
    var child = history[0]
    // What follows what is known may be no history.
    let end = history.indices.dropFirst().first { generation(history[$0]) >= generation(history[$0 - 1]) }
    var rest = history[1..<(end ?? history.count)]
    while let next = rest.first {
      let parent = entry.nodes[child]!.parent
      let floor = parent.map(generation) ?? 0
      if generation(next) <= floor {
        if generation(next) == floor { rest.removeFirst() }
        child = parent!
        continue
      }
      let above = rest.prefix { generation($0) > floor }
      let missing = above.prefix { entry.nodes[$0] == nil }
      let known = above.dropFirst(missing.count).first
      rest = rest.dropFirst(missing.count + (known == nil ? 0 : 1))
      let behind = Set((known.map { branch($0, entry) } ?? []) + (parent.map { branch($0, entry) } ?? []))
      // Two of the same generation can't be in one history.
      if Set(behind.map(generation)).count == behind.count {
        let line = [child] + missing + behind.sorted { generation($0) > generation($1) }
        if connect(id, line) { return true }
      }
      child = known ?? child
    }
    return false
  }

  /// A revision and its ancestors.
  private func branch(_ revision: String, _ entry: Entry) -> [String] {
    Array(sequence(first: revision) { entry.nodes[$0]!.parent })
  }

  /// Makes each of these the child of the next one, unless pruning would leave nothing of that.
  private mutating func connect(_ id: String, _ line: [String]) -> Bool {
    let entry = documents[id]!
    var next = self
    next.lastSequence += 1
    var joined = entry
    for (child, parent) in zip(line, line.dropFirst()) {
      if joined.nodes[parent] == nil {
        joined.nodes[parent] = Node(
          generation: generation(parent), suffix: String(parent.drop { $0 != "-" }.dropFirst()),
          parent: nil, sequence: next.lastSequence, body: nil)
      }
      joined.nodes[child]!.parent = parent
    }
    next.finish(id, joined)
    let after = next.documents[id]!
    let isLinked = after.nodes[line[0]]?.parent == line[1]
    let endsLeaf = entry.nodes.keys.contains {
      entry.isLeaf($0) && !(after.nodes[$0] != nil && after.isLeaf($0))
    }
    guard isLinked || endsLeaf else { return false }
    self = next
    return true
  }

  mutating func purge(_ id: String) throws {
    if documents.removeValue(forKey: id) == nil { throw Refused(code: .notFound) }
  }

  mutating func compact() {
    for id in documents.keys { dropReplaced(&documents[id]!) }
  }

  private func generation(_ id: String) -> Int { Int(id.prefix { $0 != "-" })! }

  private func dropReplaced(_ entry: inout Entry) {
    for revision in entry.nodes.keys where !entry.isLeaf(revision) { entry.nodes[revision]!.body = nil }
  }

  private mutating func finish(_ id: String, _ changed: Entry) {
    var entry = changed
    entry.sequence = lastSequence
    let leaves = entry.nodes.keys.filter(entry.isLeaf)
    let highest = entry.nodes.values.map(\.generation).max()!
    var kept = Set(entry.nodes.keys)
    if highest > depth {
      if leaves.count == 1 {
        kept = kept.filter { leaves.contains($0) || entry.nodes[$0]!.generation > highest - depth }
      } else {
        kept = []
        for leaf in leaves {
          var next: String? = leaf
          for _ in 0..<depth {
            guard let revision = next else { break }
            kept.insert(revision)
            next = entry.nodes[revision]!.parent
          }
        }
      }
    }
    entry.nodes = entry.nodes.filter { kept.contains($0.key) }
    for revision in entry.nodes.keys {
      if let parent = entry.nodes[revision]!.parent, !kept.contains(parent) {
        entry.nodes[revision]!.parent = nil
      }
    }
    if !keepsReplacedBodies { dropReplaced(&entry) }
    documents[id] = entry
  }
}

/// SHA-1 (RFC 3174) in lower-case hex.
func sha1(_ message: [UInt8]) -> String {
  var bytes = message + [0x80]
  while bytes.count % 64 != 56 { bytes.append(0) }
  let bits = UInt64(message.count) * 8
  for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: bits >> shift)) }
  func rotated(_ x: UInt32, _ n: UInt32) -> UInt32 { x << n | x >> (32 - n) }
  var h: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
  for block in stride(from: 0, to: bytes.count, by: 64) {
    var w = (0..<16).map { word in
      (0..<4).reduce(UInt32(0)) { $0 << 8 | UInt32(bytes[block + word * 4 + $1]) }
    }
    for t in 16..<80 { w.append(rotated(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1)) }
    var (a, b, c, d, e) = (h[0], h[1], h[2], h[3], h[4])
    for t in 0..<80 {
      let (f, k): (UInt32, UInt32) =
        switch t / 20 {
        case 0: ((b & c) | (~b & d), 0x5A82_7999)
        case 1: (b ^ c ^ d, 0x6ED9_EBA1)
        case 2: ((b & c) | (b & d) | (c & d), 0x8F1B_BCDC)
        default: (b ^ c ^ d, 0xCA62_C1D6)
        }
      (a, b, c, d, e) = (rotated(a, 5) &+ f &+ e &+ k &+ w[t], a, rotated(b, 30), c, d)
    }
    h = [h[0] &+ a, h[1] &+ b, h[2] &+ c, h[3] &+ d, h[4] &+ e]
  }
  return h.map { String(format: "%08x", $0) }.joined()
}
