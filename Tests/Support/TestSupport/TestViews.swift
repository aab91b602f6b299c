// The views of random tests and of kills. `database-child` has the same ones.

import Touchstone

/// A view of the tests. Its map function depends on a version.
package struct TestView: Sendable {
  package let name: String
  package let collation: ViewCollation
  package let documentType: String?
  package let map: @Sendable (_ version: Int) -> ViewMap

  package init(
    _ name: String, _ collation: ViewCollation = .unicode, documentType: String? = nil,
    _ map: @escaping @Sendable (_ version: Int) -> ViewMap
  ) {
    self.name = name
    self.collation = collation
    self.documentType = documentType
    self.map = map
  }

  /// The views. Three of them are updated together.
  package static let all: [TestView] = [
    TestView("g/keys") { version in
      { document, emit in
        if version % 2 == 1 { emit(document["k"], document["n"]) } else { emit(document["n"], document["k"]) }
      }
    },
    TestView("g/parts", .raw) { version in
      { document, emit in
        let properties = try document.properties()
        for tag in properties["tags"]?.array ?? [] {
          let key = JSONValue.array([tag, properties["k"] ?? .null, .int(Int64(version))])
          emit(key, properties["n"])
        }
      }
    },
    TestView("g/typed", documentType: "t1") { version in
      { document, emit in
        if version % 2 == 1 { emit(document["n"], document) } else { emit(document["k"], document) }
      }
    },
    TestView("long", .ascii) { version in
      { document, emit in
        let text = try (document.properties()["k"] ?? .null).canonicalJSON()
        for length in [0, 500 + version, 1_400] {
          let key = JSONValue.string(String(repeating: "x", count: length) + text)
          emit(key)
        }
      }
    },
    TestView("meta", .root) { version in
      { document, emit in
        var value = JSONObject()
        if version % 2 == 1 {
          value["rev"] = .string(try document.revisionID.description)
          value["seq"] = .int(Int64(try document.sequence))
          let conflicts = try document.conflicts
          if !conflicts.isEmpty { value["conflicts"] = .array(conflicts.map { .string($0.description) }) }
          let key = JSONValue.string(document.id)
          emit(key, JSONValue.object(value))
        } else {
          let properties = try document.properties()
          value["rev"] = properties["_rev"]
          value["seq"] = properties["_local_seq"]
          value["conflicts"] = properties["_conflicts"]
          emit(properties["_id"], JSONValue.object(value))
        }
      }
    },
    TestView("many") { version in
      { document, emit in
        let number = Int64((document["n"]?.double ?? 0).rounded(.down))
        for index in 0..<(abs(number) % 5) {
          emit(JSONValue.int(number % Int64(2 + version)), JSONValue.int(index))
        }
      }
    },
  ]

  package static func named(_ name: String) -> TestView { all.first { $0.name == name } ?? all[0] }

  /// Sets the map function of a version.
  @discardableResult
  package func set(in database: Database, version: Int) throws -> View {
    let view = try database.view(name)
    try view.setMap(version: "\(version)", collation: collation, documentType: documentType, map(version))
    return view
  }
}

extension Database {
  /// Changes documents in one batch, in a way that the number tells: saves, deletions, conflicts and purges.
  package func changeTestDocuments(_ number: Int) throws {
    try inBatch {
      for part in 0..<12 {
        let id = "doc\((number &* 7 &+ part &* 13) % 150)"
        let mixed = number &* 31 &+ part &* part
        let keys: [JSONValue] = [
          .int(Int64(mixed % 9)), .string("text\(mixed % 30)"), ["a", .int(Int64(mixed % 4))], .null,
        ]
        try save(
          id,
          [
            "n": .int(Int64(mixed % 40)), "k": keys[mixed % 4], "type": .string("t\(mixed % 3)"),
            "tags": .array((0..<(mixed % 4)).map { .string("tag\($0 % 2)") }),
          ])
      }
      let id = "doc\(number &* 11 % 150)"
      switch number % 5 {
      case 0: if try document(id) != nil { try delete(id) }
      case 1:
        try apply(PulledRevision(id: id, history: ["1-aa\(number % 10)"], body: ["n": 3, "k": "other"]))
      case 2: if try document(id, includeDeleted: true) != nil { try purge(id) }
      case 3:
        if let leaf = try leaves(of: id).last { try purge(id, branch: leaf.id) }
      default:
        if let leaf = try leaves(of: id).last { try resolveConflict(of: id, keeping: leaf.id) }
      }
    }
  }
}
