import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// Users of the tests of rights.
enum Person {
  static let root = UserContext.admin("root")
  static let boss = UserContext(name: "boss", roles: [])
  static let chief = UserContext(name: "ch", roles: ["chiefs"])
  static let member = UserContext(name: "carol", roles: [])
  static let reader = UserContext(name: "re", roles: ["readers"])
  static let stranger = UserContext(name: "dave", roles: ["others"])
  static let nobody = UserContext.anonymous
}

extension APIClient {
  /// The security object that knows the persons.
  static let security =
    #"{"admins":{"names":["boss"],"roles":["chiefs"]},"members":{"names":["carol"],"roles":["readers"]}}"#

  /// A service with logins, and the database `db` with that security object.
  static func secured(
    _ engine: EngineName = .lmdb, _ change: (inout DatabaseServiceConfiguration) -> Void = { _ in }
  ) throws -> APIClient {
    var configuration = DatabaseServiceConfiguration()
    configuration.logins = RecordedLogins()
    configuration.hasUsers = true
    configuration.passwordIterations = 10
    change(&configuration)
    let client = try APIClient(engine, configuration)
    try expect(client.send("PUT", "/db", as: Person.root).status, equals: 201)
    try expect(client.send("PUT", "/db/_security", security, as: Person.root).status, equals: 200)
    return client
  }

  /// Asks with a body of JSON, as somebody.
  func send(_ method: String, _ target: String, _ json: String = "", as user: UserContext) throws -> Response
  {
    let headers = json.isEmpty && method == "GET" ? [] : [("Content-Type", "application/json")]
    return try ask(method, target, headers: headers, body: Array(json.utf8), as: user)
  }
}

/// `_security`: who administers a database, and who is a member.
@Suite struct SecurityTests {
  @Test("it is kept with the database, and a new one lets only administrators in", arguments: someEngines)
  func kept(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path, options: try options(engine))
    var client = APIClient(folder: folder)
    try expect(client.ask("PUT", "/db").status, equals: 201)
    let standard: JSONValue = ["members": ["roles": ["_admin"]], "admins": ["roles": ["_admin"]]]
    try expect(client.get("/db/_security").json(), equals: standard)
    try expect(client.get("/db").json()["update_seq"].string?.hasPrefix("0-"), equals: true)
    let set = #"{"members":{"names":["ü"]},"more":[1,{"a":null}],"admins":{}}"#
    try expect(client.send("PUT", "/db/_security", set).text, equals: "{\"ok\":true}\n")
    try expect(client.get("/db/_security").text, equals: set + "\n")
    // It is no document: it has no sequence, and no list has it.
    try expect(client.get("/db").json()["update_seq"].string?.hasPrefix("0-"), equals: true)
    try expect(client.get("/db/_all_docs").json()["rows"].array?.count, equals: 0)
    try expect(client.get("/db/_local_docs").json()["rows"].array?.count, equals: 0)
    try folder.close()
    client = APIClient(folder: folder)
    try expect(client.get("/db/_security").text, equals: set + "\n")
    // Another database of that name has none.
    try expect(client.ask("DELETE", "/db").status, equals: 200)
    try expect(client.ask("PUT", "/db").status, equals: 201)
    try expect(client.get("/db/_security").json(), equals: standard)
    try folder.close()
  }

  @Test("another process's is seen at once, and a conversion keeps it") func elsewhere() throws {
    let databases = TestDatabases()
    let database = try databases.open(.lmdb)
    try database.save("a", ["n": 1])
    try database.setSecurityObject(Array("{}".utf8))
    let client = APIClient(["db": database])
    try expect(client.send("GET", "/db/a", as: Person.nobody).status, equals: 200)
    try database.setSecurityObject(Array(APIClient.security.utf8))
    try expect(client.send("GET", "/db/a", as: Person.nobody).status, equals: 401)
    try expect(client.send("GET", "/db/a", as: Person.member).status, equals: 200)
    // What can't be read lets nobody in.
    try database.setSecurityObject(Array(#"{"members":{}"#.utf8))
    try expect(client.send("GET", "/db/a", as: Person.member).status, equals: 403)
    try database.setSecurityObject(Array(APIClient.security.utf8))
    let faults = try database.check()
    expect(faults.count, equals: 0, "\(faults)")
  }

  @Test(
    "objects that aren't one are refused",
    arguments: [
      "[1]", "1", "null", #"{"admins":[]}"#, #"{"members":"a"}"#, #"{"admins":{"names":"bob"}}"#,
      #"{"members":{"roles":[1]}}"#, #"{"readers":{"roles":{}}}"#, #"{"admins":null}"#, "{",
    ]) func malformed(_ json: String) throws
  {
    let client = try APIClient.secured()
    try expect(client.send("PUT", "/db/_security", json, as: Person.root).status, equals: 400)
    try expect(client.send("GET", "/db/_security", as: Person.root).text, equals: APIClient.security + "\n")
  }

  @Test("an object has at most 256 KiB") func size() throws {
    let client = try APIClient.secured()
    func put(_ count: Int) throws -> Int {
      let text = #"{"x":""# + String(repeating: "x", count: count - 8) + #""}"#
      return try client.send("PUT", "/db/_security", text, as: Person.root).status
    }
    try expect(put(256 << 10), equals: 200)
    try expect(put((256 << 10) + 1), equals: 413)
  }

  @Test("names and roles let in, and an empty group of members lets everybody in")
  func groups() throws {
    func members(_ json: String) throws -> [Bool] {
      let security = try DatabaseSecurity(text: Array(json.utf8))
      return [
        Person.root, Person.boss, Person.chief, Person.member, Person.reader, Person.stranger, Person.nobody,
      ].map { security.isMember($0) }
    }
    let (yes, no) = (true, false)
    try expect(members(APIClient.security), equals: [yes, yes, yes, yes, yes, no, no])
    try expect(members("{}"), equals: [yes, yes, yes, yes, yes, yes, yes])
    try expect(members(#"{"members":{"names":[],"roles":[]}}"#), equals: [yes, yes, yes, yes, yes, yes, yes])
    try expect(members(#"{"members":{"roles":["readers"]}}"#), equals: [yes, no, no, no, yes, no, no])
    // The old name of the group.
    try expect(members(#"{"readers":{"names":["dave"]}}"#), equals: [yes, no, no, no, no, yes, no])
    expect(
      !DatabaseSecurity.standard.isMember(Person.boss) && DatabaseSecurity.standard.isMember(Person.root))
    // Names are equal when their bytes are.
    let composed = try DatabaseSecurity(
      text: Array("{\"members\":{\"names\":[\"\u{e9}\"]}}".utf8))
    expect(composed.isMember(UserContext(name: "\u{e9}", roles: [])))
    expect(!composed.isMember(UserContext(name: "e\u{301}", roles: [])))
  }
}
