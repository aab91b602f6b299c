import Bytes
import TestSupport

@testable import Documents

@Suite("Revision trees") struct RevisionTreeTests {
  /// Adds a revision on top of another, by their texts.
  private func add(
    _ text: String, to tree: RevisionTree, parent: String? = nil, deleted: Bool = false
  ) throws -> Int {
    let id = try #require(RevisionID(text))
    let parentID = try parent.map { try #require(RevisionID($0)) }
    let parentIndex = parentID?.withStored { tree.index(of: $0) }
    expect((parent == nil), equals: (parentIndex == nil))
    var flags: RevisionFlags = [.leaf, .hasBody]
    if deleted { flags.insert(.deleted) }
    return id.withStored {
      tree.addChild($0, of: (parentIndex ?? nil) ?? -1, sequence: id.generation, flags: flags)
    }
  }

  private func texts(_ tree: RevisionTree) -> [String] {
    tree.nodes.indices.map { tree.revisionID(of: $0).description }
  }

  private func encoded(_ tree: RevisionTree) -> [UInt8] {
    var buffer = ByteBuffer()
    tree.encode(into: &buffer)
    return Array(buffer.bytes)
  }

  @Test("the winner is live, then of the longest branch, then of the higher ID")
  func winner() throws {
    let tree = RevisionTree()
    _ = tree.sort(watching: try add("1-a", to: tree))
    _ = tree.sort(watching: try add("2-b", to: tree, parent: "1-a"))
    _ = tree.sort(watching: try add("2-c", to: tree, parent: "1-a"))
    expect(texts(tree)[0], equals: "2-c")
    expect(tree.isConflicted)
    _ = tree.sort(watching: try add("3-a", to: tree, parent: "2-b"))
    expect(texts(tree)[0], equals: "3-a")
    _ = tree.sort(watching: try add("4-a", to: tree, parent: "3-a", deleted: true))
    expect(texts(tree)[0], equals: "2-c")
    expect(!tree.isConflicted)
    _ = tree.sort(watching: try add("3-x", to: tree, parent: "2-c", deleted: true))
    expect(texts(tree)[0], equals: "4-a")
  }

  @Test("the same revisions have the same bytes whatever order they arrived in")
  func orderOfArrival() throws {
    try withSeed { random in
      for _ in 0..<300 {
        // A random forest, parents before children.
        var revisions: [(id: String, parent: String?, deleted: Bool)] = []
        var suffix = 0
        for _ in 0..<Int.random(in: 1...12, using: &random) {
          let parent =
            revisions.isEmpty || Int.random(in: 0..<8, using: &random) == 0
            ? nil : revisions.randomElement(using: &random)
          let generation = parent.flatMap { RevisionID($0.id)?.generation } ?? 0
          suffix += 1
          let text = "\(generation + 1)-\(Bool.random(using: &random) ? "0" : "x")\(suffix + 10)"
          revisions.append((text, parent?.id, Int.random(in: 0..<5, using: &random) == 0))
        }
        var bytes: [UInt8]?
        for _ in 0..<4 {
          let tree = RevisionTree()
          var left = revisions.shuffled(using: &random)
          var present: Set<String> = []
          while let next = left.firstIndex(where: { $0.parent == nil || present.contains($0.parent ?? "") }) {
            let revision = left.remove(at: next)
            let index = try add(revision.id, to: tree, parent: revision.parent, deleted: revision.deleted)
            let place = tree.sort(watching: index)
            expect(texts(tree)[place], equals: revision.id)
            present.insert(revision.id)
          }
          let encodedNow = encoded(tree)
          expect(bytes == nil || bytes == encodedNow)
          bytes = encodedNow
          let decoded = RevisionTree()
          try decoded.decode(encodedNow.span.bytes)
          expect(encoded(decoded), equals: encodedNow)
          // The winner by the rule, plainly: live leaves first, then the highest ID.
          let parents = Set(revisions.compactMap(\.parent))
          let leaves = revisions.filter { !parents.contains($0.id) }
          let candidates = leaves.contains { !$0.deleted } ? leaves.filter { !$0.deleted } : leaves
          expect(tree.revisionID(of: 0), equals: candidates.compactMap { RevisionID($0.id) }.max())
        }
      }
    }
  }

  @Test("pruning one branch keeps its last generations")
  func pruneOneBranch() throws {
    let tree = RevisionTree()
    _ = tree.sort(watching: try add("1-0a", to: tree))
    var removed: [UInt64] = []
    for generation in 2...25 {
      let index = tree.sort(watching: try add("\(generation)-0a", to: tree, parent: "\(generation - 1)-0a"))
      expect(
        tree.prune(depth: 20, keeping: { [] }, watching: index) { removed.append($0) }.watched, equals: 0)
    }
    expect(texts(tree), equals: (6...25).reversed().map { "\($0)-0a" })
    expect(removed, equals: [1, 2, 3, 4, 5])
  }

  @Test("pruning keeps marked revisions, as parents of the next ones above them") func pruneMarked() throws {
    let tree = RevisionTree()
    _ = tree.sort(watching: try add("1-0a", to: tree))
    var removed: [UInt64] = []
    func places(_ marked: [String]) -> [Int] { marked.compactMap { id in texts(tree).firstIndex(of: id) } }
    for generation in 2...12 {
      let index = tree.sort(watching: try add("\(generation)-0a", to: tree, parent: "\(generation - 1)-0a"))
      let marked = generation < 12 ? ["4-0a", "2-0a"] : ["4-0a"]
      expect(
        tree.prune(depth: 3, keeping: { places(marked) }, watching: index) { removed.append($0) }.watched,
        equals: 0)
      expect(tree.isChain)
    }
    // A mark that has moved on keeps nothing any more.
    expect(texts(tree), equals: ["12-0a", "11-0a", "10-0a", "4-0a"])
    expect(tree.nodes.map(\.parent) == [1, 2, 3, -1] && removed == [1, 3, 5, 6, 7, 8, 9, 2])
    var bytes = ByteBuffer(capacity: 200)
    tree.encode(into: &bytes)
    let read = RevisionTree()
    try read.decode(bytes.bytes.bytes)
    expect(texts(read), equals: texts(tree))
  }

  @Test("a marked revision below two branches is the parent of the one that ends above it")
  func pruneMarkedBranches()
    throws
  {
    let tree = RevisionTree()
    _ = tree.sort(watching: try add("1-00", to: tree))
    _ = tree.sort(watching: try add("2-00", to: tree, parent: "1-00"))
    _ = tree.sort(watching: try add("3-aa", to: tree, parent: "2-00"))
    _ = tree.sort(watching: try add("3-bb", to: tree, parent: "2-00"))
    for generation in 4...9 {
      let index = tree.sort(watching: try add("\(generation)-bb", to: tree, parent: "\(generation - 1)-bb"))
      _ = tree.prune(
        depth: 2, keeping: { texts(tree).firstIndex(of: "1-00").map { [$0] } ?? [] }, watching: index
      ) { _ in }
    }
    expect(Set(texts(tree)), equals: ["9-bb", "8-bb", "3-aa", "2-00", "1-00"])
    func parent(_ id: String) -> String? {
      texts(tree).firstIndex(of: id).flatMap { index in
        let parent = Int(tree.nodes[index].parent)
        return parent < 0 ? nil : texts(tree)[parent]
      }
    }
    expect(parent("3-aa") == "2-00" && parent("2-00") == "1-00" && parent("1-00") == nil)
    // The next remaining one below it isn't marked: it stays on its own, as without marks.
    expect(parent("8-bb") == nil)
  }

  @Test("pruning keeps the last revisions of each branch, and never a leaf less")
  func pruneBranches() throws {
    let tree = RevisionTree()
    _ = tree.sort(watching: try add("1-00", to: tree))
    _ = tree.sort(watching: try add("2-aa", to: tree, parent: "1-00"))
    _ = tree.sort(watching: try add("2-bb", to: tree, parent: "1-00"))
    for generation in 3...9 {
      let index = tree.sort(watching: try add("\(generation)-bb", to: tree, parent: "\(generation - 1)-bb"))
      _ = tree.prune(depth: 5, keeping: { [] }, watching: index) { _ in }
    }
    expect(Set(texts(tree)), equals: ["9-bb", "8-bb", "7-bb", "6-bb", "5-bb", "2-aa", "1-00"])
    expect(texts(tree)[0], equals: "9-bb")
    expect(tree.isConflicted)
    let root = try #require(tree.nodes.indices.first { texts(tree)[$0] == "5-bb" })
    expect(tree.nodes[root].parent, equals: -1)
  }

  @Test("damaged bytes are refused or read, never a crash")
  func damage() throws {
    let tree = RevisionTree()
    _ = tree.sort(watching: try add("1-00", to: tree))
    for text in ["2-aa", "2-bb"] { _ = tree.sort(watching: try add(text, to: tree, parent: "1-00")) }
    let bytes = encoded(tree)
    withSeed { random in
      for _ in 0..<20_000 {
        var damaged = bytes
        for _ in 0..<Int.random(in: 1...3, using: &random) {
          damaged[Int.random(in: 0..<damaged.count, using: &random)] = .random(in: 0...255, using: &random)
        }
        if Bool.random(using: &random) {
          damaged.removeLast(Int.random(in: 0...damaged.count, using: &random))
        }
        let read = RevisionTree()
        _ = try? read.decode(damaged.span.bytes)
      }
    }
    #expect(throws: DocumentError.self) { try tree.decode(RawSpan()) }
  }
}
