import Fleece
import Foundation
import HTTPAPI
import TestSupport
import Testing
import Touchstone

@Suite("The uuid of a server lasts") struct ServerIdentityTests {
  private let directory = TemporaryDirectory()

  private func uuid(_ client: APIClient) throws -> String {
    let uuid = try client.ask("GET", "/").json()["uuid"].string ?? ""
    expect(uuid.utf8.count == 32 && uuid.utf8.allSatisfy { $0 &- 0x30 < 10 || $0 &- 0x61 < 6 })
    return uuid
  }

  private func serve(
    _ engine: EngineName = .lmdb, path: String? = nil, isReadOnly: Bool = false,
    _ body: (APIClient) throws -> Void
  ) throws {
    let folder = try DatabaseFolder(path ?? directory.path, options: try options(engine))
    var configuration = DatabaseServiceConfiguration()
    configuration.isReadOnly = isReadOnly
    try body(APIClient(folder: folder, configuration))
    try folder.close()
  }

  @Test("a folder keeps it", arguments: someEngines) func kept(_ engine: EngineName) throws {
    var known = ""
    try serve(engine, path: directory.file("new")) { known = try uuid($0) }
    try serve(engine, path: directory.file("new")) { client throws in
      try expect(uuid(client), equals: known)
      try expect(client.ask("PUT", "/db").status, equals: 201)
      try expect(client.ask("GET", "/_all_dbs").json(), equals: ["db"])
    }
    try serve(engine, path: directory.file("new")) { client throws in
      try expect(uuid(client), equals: known)
      try expect(client.ask("DELETE", "/db").status, equals: 200)
      try expect(uuid(client), equals: known)
    }
    try serve(engine, path: directory.file("new"), isReadOnly: true) { client throws in
      try expect(uuid(client), equals: known)
    }
    try serve(engine, path: directory.file("other")) { client throws in try expect(uuid(client) != known) }
  }

  @Test("a server that only reads writes nothing, and takes that of the first database") func reading() throws
  {
    try serve(isReadOnly: true) { _ = try uuid($0) }
    try expect(directory.names().isEmpty)
    let folder = try DatabaseFolder(directory.path, options: try options(.lmdb))
    let first = try folder.open("a").publicUUID.replacing("-", with: "")
    _ = try folder.open("b")
    try folder.close()
    let before = try directory.names()
    for _ in 0..<2 {
      try serve(isReadOnly: true) { client throws in try expect(uuid(client), equals: first) }
    }
    try expect(directory.names(), equals: before)
    // One that writes goes on with it, and keeps it.
    try serve { client throws in try expect(uuid(client), equals: first) }
    try serve { client throws in
      try expect(client.ask("DELETE", "/a").status, equals: 200)
      try expect(uuid(client), equals: first)
    }
    try serve { client throws in try expect(uuid(client), equals: first) }
  }

  @Test("a file that can't be read is left alone") func unreadable() throws {
    let folder = try DatabaseFolder(directory.path, options: try options(.lmdb))
    let first = try folder.open("a").publicUUID.replacing("-", with: "")
    try folder.close()
    let file = URL(fileURLWithPath: directory.file("server.json"))
    for text in [
      "", "{}", "{\"version\":2,\"uuid\":\"0123456789abcdef0123456789abcdef\"}",
      "{\"version\":1,\"uuid\":\"x\"}",
    ] {
      try Data(text.utf8).write(to: file)
      try serve { client throws in try expect(uuid(client), equals: first) }
      try expect(Data(contentsOf: file), equals: Data(text.utf8))
    }
  }

  @Test("databases of an app have that of the first") func opened() throws {
    let databases = TestDatabases()
    let (a, b) = (try databases.open(.lmdb), try databases.open(.sqlite))
    for _ in 0..<2 {
      try expect(uuid(APIClient(["b": b, "a": a])), equals: a.publicUUID.replacing("-", with: ""))
    }
  }
}
