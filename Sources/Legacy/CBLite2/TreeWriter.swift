import Bytes
import CCrypto
import Documents

/// Encodes the trees of documents in the format of 2.x (RawRevisionTree.swift).
struct TreeWriter {
  /// A revision that is being encoded.
  private struct Node {
    var source: Int
    var flags: RawRevisionFlags
    var generation: UInt64
    /// The range of the binary ID in `ids`.
    var id: Range<Int>
    var digest: Range<Int>
  }

  /// A revision whose ID was changed: its index in the document and its new ID.
  struct Rewritten {
    let source: Int
    let id: String
  }

  private(set) var bytes: [UInt8] = []
  /// The binary ID of the current revision.
  private(set) var version: ArraySlice<UInt8> = []
  private(set) var rewritten: [Rewritten] = []
  /// The number of revisions that were written. The others were removed.
  private(set) var count = 0
  private(set) var bodies = 0
  private(set) var isDeleted = false
  private(set) var isConflicted = false
  private(set) var hasBlobs = false

  private var nodes: [Node] = []
  private var ids: [UInt8] = []

  /// Encodes the tree of a document. `hasBlobs` returns whether a body names blobs.
  mutating func encode(
    _ document: DocumentTree, hasBlobs namesBlobs: (UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    nodes.removeAll(keepingCapacity: true)
    ids.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
    rewritten.removeAll()
    bodies = 0
    hasBlobs = false
    let revisions = document.revisions
    for index in revisions.indices { try add(revisions[index], index, namesBlobs) }
    for revision in revisions where revision.parent >= 0 { nodes[revision.parent].flags.remove(.leaf) }
    for index in nodes.indices where nodes[index].flags.isSuperset(of: [.hasBody]) {
      // 2.x drops the bodies of replaced revisions without this flag.
      if !nodes[index].flags.contains(.leaf) { nodes[index].flags.insert(.keepsBody) }
    }
    markConflicts(revisions)
    let ids = self.ids
    if nodes.count > 1 { nodes.sort { TreeWriter.precedes($0, $1, ids) } }
    if nodes.count > RawRevisionTree.longestTree {
      nodes.removeLast(nodes.count - RawRevisionTree.longestTree)
    }
    count = nodes.count
    isDeleted = nodes[0].flags.contains(.deleted)
    isConflicted =
      nodes.count > 1 && nodes[1].flags.isDisjoint(with: .deleted) && nodes[1].flags.contains(.leaf)
    version = ids[nodes[0].id]
    write(document)
  }

  private mutating func add(
    _ revision: ForeignRevision, _ index: Int, _ namesBlobs: (UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    var flags: RawRevisionFlags = .leaf
    if revision.isDeleted { flags.insert(.deleted) }
    if revision.isClosed { flags.insert(.closed) }
    if case .fleece(let body) = revision.body {
      flags.insert(.hasBody)
      bodies += 1
      if try namesBlobs(body) {
        flags.insert(.hasBlobs)
        hasBlobs = true
      }
    }
    let start = ids.count
    ids.append(varint: revision.generation)
    let digest = ids.count
    if revision.isText {
      // An ID that isn't hexadecimal is replaced by the SHA-1 of its text, so every export has the same ID.
      let text = revision.id.description
      ids += TreeWriter.sha1(Array(text.utf8))
      rewritten.append(Rewritten(source: index, id: "\(revision.generation)-\(Hex.text(ids[digest...]))"))
    } else {
      ids += revision.suffix
    }
    nodes.append(
      Node(
        source: index, flags: flags, generation: revision.generation, id: start..<ids.count,
        digest: digest..<ids.count))
  }

  /// Marks losing leaves and the ancestors that only they have. Applications are asked to resolve these
  /// conflicts.
  private mutating func markConflicts(_ revisions: UnsafeBufferPointer<ForeignRevision>) {
    let leaves = nodes.indices.filter { nodes[$0].flags.contains(.leaf) }
    guard leaves.count > 1, !revisions[0].isDeleted else { return }
    var isMain = [Bool](repeating: false, count: nodes.count)
    var index = 0
    while index >= 0 {
      isMain[index] = true
      index = revisions[index].parent
    }
    // Deleted losing leaves are marked too. Otherwise they would be between the current revision and the
    // other leaves.
    guard leaves.contains(where: { $0 > 0 && !revisions[$0].isDeleted }) else { return }
    for leaf in leaves where leaf > 0 {
      var index = leaf
      while index >= 0, !isMain[index] {
        nodes[index].flags.insert(.inConflict)
        index = revisions[index].parent
      }
    }
  }

  private static func precedes(_ a: Node, _ b: Node, _ ids: [UInt8]) -> Bool {
    for (flag, isFirst) in [
      (RawRevisionFlags.leaf, true), (.inConflict, false), (.deleted, false), (.closed, false),
    ] where a.flags.contains(flag) != b.flags.contains(flag) {
      return a.flags.contains(flag) == isFirst
    }
    if a.generation != b.generation { return a.generation > b.generation }
    return ids[b.digest].lexicographicallyPrecedes(ids[a.digest])
  }

  private mutating func write(_ document: DocumentTree) {
    var places = [Int](repeating: RawRevisionTree.noParent, count: document.revisions.count)
    for (place, node) in nodes.enumerated() { places[node.source] = place }
    for node in nodes {
      let revision = document.revisions[node.source]
      let start = bytes.count
      let parent = revision.parent < 0 ? RawRevisionTree.noParent : places[revision.parent]
      bytes += [
        0, 0, 0, 0, UInt8(truncatingIfNeeded: parent >> 8), UInt8(truncatingIfNeeded: parent),
        node.flags.rawValue, UInt8(node.id.count),
      ]
      bytes += ids[node.id]
      let sequence = revision.sequence == document.sequence ? 0 : revision.sequence
      bytes.append(varint: sequence)
      if case .fleece(let body) = revision.body { bytes += body }
      let size = bytes.count - start
      for byte in 0..<4 { bytes[start + byte] = UInt8(truncatingIfNeeded: size >> (24 - 8 * byte)) }
    }
    bytes += [0, 0, 0, 0]
  }

  private static func sha1(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 20)
    EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha1(), nil)
    return digest
  }
}
