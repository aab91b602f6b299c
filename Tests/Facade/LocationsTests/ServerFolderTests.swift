import ChildProcesses
import TestSupport

@Suite("Folders of databases on a server", .enabled(if: hasServer)) struct ServerFolderTests {
  /// The location of a database of the server with no databases of ours, and its folder.
  private func makeFolder() throws -> (location: String, folder: DatabaseFolder) {
    let name = "folder_" + UUID().uuidString.replacingOccurrences(of: "-", with: "").lowercased()
    try server().sql("CREATE DATABASE \(name)")
    let location = "postgres:///\(name)?host=\(try server().directory)&user=touchstone"
    return (location, try DatabaseFolder(location))
  }

  @Test("opens, lists, copies and removes databases by their names")
  func names() throws {
    let (location, folder) = try makeFolder()
    expect(folder.path, equals: location)
    try expect(folder.names(), equals: [])
    for name in ["b", "a/b", "ä c"] {
      let database = try folder.open(name)
      expect(database.name, equals: name)
      try database.save("doc", ["name": .string(name)])
    }
    try folder.close()
    try expect(folder.names(), equals: ["a/b", "b", "ä c"])
    expect(folder.exists("b") && !folder.exists("c"))
    try expect(folder.path(of: "a/b"), equals: location + "#a%2Fb")
    try expect(databaseCode { try folder.openExisting("c") }, equals: .notFound)
    try expect(folder.install("copy", from: location + "#b"))
    try expect(!folder.install("copy", from: location + "#b"))
    let copy = try folder.openExisting("copy")
    try expect(copy.document("doc")?["name"].string, equals: "b")
    try expect(databaseCode { try folder.delete("copy") }, equals: .inUse)
    try folder.close()
    try folder.delete("copy")
    try expect(folder.names(), equals: ["a/b", "b", "ä c"])
  }

  @Test("gives databases other names, unless they are open or the name is taken")
  func moves() throws {
    let (location, folder) = try makeFolder()
    let database = try folder.open("a")
    try database.save("doc", ["n": 1, "file": database.makeBlob(randomBytes(300_000)).jsonValue])
    try folder.open("b").close()
    try expect(databaseCode { try folder.move("a", to: "c/d") }, equals: .inUse)
    try database.close()
    // Another process has it open.
    let path = try #require(builtExecutable("touchstone"))
    let child = try ChildProcess.start(path, ["changes", location + "#a", "--follow"])
    try eventually { child.outputText.contains("doc") }
    try expect(databaseCode { try folder.move("a", to: "c/d") }, equals: .inUse)
    child.kill()
    _ = try child.wait()
    try expect(databaseCode { try folder.move("a", to: "b") }, equals: .alreadyExists)
    try expect(databaseCode { try folder.move("none", to: "c/d") }, equals: .notFound)
    try expect(databaseCode { try folder.move("a", to: "a") }, equals: .alreadyExists)
    // A schema of something else has the name.
    try server().sql("CREATE SCHEMA theirs", in: location)
    try expect(databaseCode { try folder.move("a", to: "theirs") }, equals: .alreadyExists)
    try eventually { (try? folder.move("a", to: "c/d")) != nil }
    try expect(folder.names(), equals: ["b", "c/d"])
    let moved = try folder.openExisting("c/d")
    try expect(moved.document("doc")?["n"].int, equals: 1)
    try moved.save("more", ["n": 2])
    try expect(moved.check(deep: true).map(\.description), equals: [])
    try folder.close()
    try folder.delete("c/d")
    // Tables of something else would get another name with the schema.
    try server().sql("CREATE SCHEMA given; CREATE TABLE given.other (id integer)", in: location)
    try folder.open("given").close()
    try expect(storageCode { try folder.move("given", to: "taken") }, equals: .unsupported)
    try expect(folder.names(), equals: ["b", "given"])
    try server().sql("DROP TABLE given.other", in: location)
    try folder.move("given", to: "taken")
    try expect(folder.names(), equals: ["b", "taken"])
  }

  @Test("of two that rename a database at once, one does")
  func racingMoves() throws {
    let (location, folder) = try makeFolder()
    try folder.open("old").close()
    let others = try (0..<2).map { _ in try DatabaseFolder(location) }
    let results = Lock<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 2) { number in
      let result: String
      do {
        let code = try databaseCode { try others[number].move("old", to: "new\(number)") }
        result = code.map { "\($0)" } ?? "moved"
      } catch { result = "\(error)" }
      results.withLock { $0.append(result) }
    }
    let moved = results.withLock { $0 }
    expect(moved.filter { $0 == "moved" }.count, equals: 1, "\(moved)")
    let names = try folder.names()
    expect(names.count == 1 && names[0].hasPrefix("new"), "\(names)")
    try folder.openExisting(names[0]).close()
  }

  @Test("a database that another server has open is deleted when that one has ended")
  func deletion() throws {
    let (location, folder) = try makeFolder()
    let database = try folder.open("shared")
    try database.save("doc", ["n": 1])
    try folder.close()
    let path = try #require(builtExecutable("touchstone"))
    let servers = try (0..<2).map { _ in
      try ChildProcess.start(
        path, ["serve", location, "--listen", "127.0.0.1:0", "--create", "--engine", "postgres"])
    }
    defer { for server in servers { server.kill() } }
    func answer(_ server: Int, _ method: String, _ target: String) throws -> (status: Int, text: String) {
      let line = try #require(servers[server].line(0))
      let port = try #require(line.split(separator: ":").last.flatMap { UInt16($0.split(separator: "/")[0]) })
      return askHTTP(port, method, target)
    }
    func ask(_ server: Int, _ method: String, _ target: String) throws -> Int {
      try answer(server, method, target).status
    }
    for server in servers { try server.waitForOutput() }
    for server in 0..<2 { try expect(ask(server, "GET", "/shared/doc"), equals: 200) }
    // It waits for some seconds, and then says who has it.
    let refusal = try answer(0, "DELETE", "/shared")
    expect(refusal.status, equals: 503)
    expect(refusal.text.contains("open in another process"), "\(refusal.text)")
    for server in 0..<2 { try expect(ask(server, "GET", "/shared/doc"), equals: 200) }
    servers[1].kill(SIGTERM)
    _ = try servers[1].wait()
    try expect(ask(0, "DELETE", "/shared"), equals: 200)
    try expect(ask(0, "GET", "/shared"), equals: 404)
    try expect(!folder.names().contains("shared"))
  }

  @Test("refuses what is about files, and names that can't be schemas")
  func refusals() throws {
    let (location, folder) = try makeFolder()
    try folder.open("a").close()
    try expect(databaseCode { try folder.replace("a", with: location + "#a") }, equals: .invalidLocation)
    for name in ["", ".a", "a\u{1}", "x.touchstone"] {
      try expect(databaseCode { try folder.open(name) }, equals: .invalidName, "\(name)")
    }
    for name in ["pg_a", String(repeating: "ä", count: 32)] {
      try expect(databaseCode { try folder.open(name) }, equals: .invalidLocation, "\(name)")
    }
  }
}

/// Asks a server over HTTP, and returns the status and all that it answers.
func askHTTP(
  _ port: UInt16, _ method: String, _ target: String, _ body: String = ""
) -> (status: Int, text: String) {
  let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  defer { close(client) }
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = inet_addr("127.0.0.1")
  let status = withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
  let type = body.isEmpty ? "" : "Content-Type: application/json\r\n"
  let request = Array(
    """
    \(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(type)\
    Content-Length: \(body.utf8.count)\r\n\r\n\(body)
    """.utf8)
  guard status == 0, send(client, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
    return (0, "no connection: \(errno)")
  }
  var answer: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 4_096)
  while case let count = recv(client, &buffer, buffer.count, 0), count > 0 { answer += buffer[..<count] }
  let text = String(decoding: answer, as: UTF8.self)
  // "HTTP/1.1 200 OK"
  return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0, text)
}
