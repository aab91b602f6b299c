import Bytes
import CCrypto
import Fleece
import Foundation
import RawHTTP
import Replication
import Storage
import TestSupport
import Testing
import Touchstone
import TouchstoneSync

@testable import HTTPAPI
@testable import TouchstoneServer

/// Users at a listener: logins, sessions, and replication over WebSockets.
@Suite struct UserListenerTests {
  /// A listener over a folder, with the administrator `root` and the users `carol`, a member of `db`, and `dave`.
  private final class Served {
    let directory = TemporaryDirectory()
    let folder: DatabaseFolder
    let listener: SyncListener
    var database: Database

    init(_ engine: EngineName = .lmdb, _ change: (inout SyncListenerConfiguration) -> Void = { _ in }) throws
    {
      folder = try DatabaseFolder(directory.path + "/databases", options: try options(engine))
      let users = directory.path + "/admins"
      // What scrypt makes is slower than the tests of one file need.
      try "root:pbkdf2-sha256:100000:\(String(repeating: "00", count: 16)):\(Self.rootKey)\n".write(
        toFile: users, atomically: true, encoding: .utf8)
      var configuration = SyncListenerConfiguration(folder: folder)
      configuration.letsClientsMakeDatabases = true
      configuration.servesHTTP = true
      configuration.authenticator = .userFile(users)
      configuration.passwordIterations = 10
      change(&configuration)
      listener = SyncListener(configuration)
      try listener.start()
      database = try folder.open("db")
      try expect(ask("PUT", "/db/_security", APIClient.security).status, equals: 200)
      for name in ["carol", "dave", "boss"] { try add(name, "pw") }
    }

    deinit {
      listener.stop(graceSeconds: 0)
      try? database.close()
      try? folder.close()
    }

    /// PBKDF2 of `secret` with that salt.
    private static let rootKey = "b8bcebf153887cf80a24ccb9cbf2c84a5b5a402e8244434400c2224fc918b5ff"

    func add(_ name: String, _ password: String) throws {
      let body = #"{"type":"user","name":"\#(name)","roles":[],"password":"\#(password)"}"#
      try expect(ask("PUT", "/_users/org.couchdb.user:\(name)", body).status, equals: 201)
    }

    static func basic(_ user: String, _ password: String) -> String {
      "Authorization: Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    static let root = basic("root", "secret")

    func ask(_ method: String, _ target: String, _ body: String = "", _ headers: [String] = [Served.root])
      throws
      -> RawClient.Answer
    {
      let client = try RawClient(UInt16(listener.port ?? 0))
      var lines = headers
      if !body.isEmpty { lines += ["Content-Type: application/json", "Content-Length: \(body.utf8.count)"] }
      try client.send(
        "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n" + lines.map { $0 + "\r\n" }.joined() + "\r\n"
          + body)
      return try client.answer(to: method)
    }

    /// Logs in, and returns the header with the cookie.
    func logIn(_ user: String, _ password: String) throws -> String? {
      let answer = try ask("POST", "/_session", #"{"name":"\#(user)","password":"\#(password)"}"#, [])
      guard answer.status == 200, let cookie = answer.header("Set-Cookie") else { return nil }
      return "Cookie: " + cookie.prefix { $0 != ";" }
    }

    func sync(
      _ local: Database, as user: String?, _ direction: ReplicatorConfiguration.Direction = .pushAndPull
    ) throws
      -> ReplicatorStatus
    {
      var configuration = ReplicatorConfiguration(
        local, try .url("ws://127.0.0.1:\(listener.port ?? 0)/db"))
      configuration.direction = direction
      configuration.maximumRetries = 0
      configuration.connection.authenticator = user.map {
        .basic(name: $0, password: $0 == "root" ? "secret" : "pw")
      }
      let replicator = Replicator(configuration)
      replicator.start()
      eventually { replicator.status.activity == .stopped }
      return replicator.status
    }
  }

  @Test("users log in with passwords and cookies, and see their roles", arguments: someEngines)
  func sessions(_ engine: EngineName) throws {
    let served = try Served(engine)
    let carol = Served.basic("carol", "pw")
    try expect(served.ask("GET", "/db", "", [carol]).status, equals: 200)
    try expect(served.ask("GET", "/db", "", [Served.basic("dave", "pw")]).status, equals: 403)
    try expect(served.ask("GET", "/db", "", [Served.basic("carol", "wrong")]).status, equals: 401)
    try expect(served.ask("GET", "/db", "", [Served.basic("none", "pw")]).status, equals: 401)
    let nobody = try served.ask("GET", "/db", "", [])
    expect(nobody.status == 401 && nobody.header("WWW-Authenticate")?.hasPrefix("Basic ") == true)
    try expect(
      served.ask("GET", "/db", "", ["X-CouchDB-WWW-Authenticate: Cookie"]).header("WWW-Authenticate"),
      equals: "Cookie")
    // Who has a dialog of its own isn't made to show the browser's.
    for header in [
      "Accept: application/json", "Accept: text/html, Application/JSON;q=0.9", "Origin: http://localhost",
      "Sec-Fetch-Mode: cors",
    ] {
      let answer = try served.ask("GET", "/db", "", [header])
      expect(answer.status == 401 && answer.header("WWW-Authenticate") == nil, "\(header)")
      let wrong = try served.ask("GET", "/db", "", [header, Served.basic("other", "wrong \(header)")])
      expect([401, 429].contains(wrong.status) && wrong.header("WWW-Authenticate") == nil, "\(header)")
    }
    for header in ["Accept: */*", "Accept: text/html", "Sec-Fetch-Mode: navigate"] {
      try expect(served.ask("GET", "/db", "", [header]).header("WWW-Authenticate") != nil, "\(header)")
    }
    let wrong = try served.ask("POST", "/_session", #"{"name":"nobody","password":"wrong"}"#, [])
    expect(wrong.status == 401 && wrong.header("WWW-Authenticate") == nil)
    let cookie = try #require(try served.logIn("carol", "pw"))
    try expect(served.ask("GET", "/db", "", [cookie]).status, equals: 200)
    try expect(served.ask("GET", "/_all_dbs", "", [cookie]).status, equals: 401)
    func session(_ headers: [String]) throws -> JSONValue {
      try JSONValue(body: served.ask("GET", "/_session", "", headers).body)
    }
    try expect(session([cookie])["userCtx"], equals: ["name": "carol", "roles": []])
    try expect(session([cookie])["info"]["authenticated"], equals: "cookie")
    try expect(session([])["userCtx"], equals: ["name": .null, "roles": []])
    try expect(session([Served.root])["userCtx"], equals: ["name": "root", "roles": ["_admin"]])
    let logIn = try served.ask("POST", "/_session", #"{"name":"carol","password":"pw"}"#, [])
    try expect(JSONValue(body: logIn.body), equals: ["ok": true, "name": "carol", "roles": []])
    try expect(served.logIn("carol", "wrong") == nil && served.logIn("none", "pw") == nil)
  }

  @Test("a session ends with a log-out, another password, and the user", arguments: someEngines)
  func ends(_ engine: EngineName) throws {
    let served = try Served(engine)
    func status(_ headers: String...) throws -> Int { try served.ask("GET", "/db", "", headers).status }
    func change(_ more: (inout JSONValue) -> Void) throws {
      var body = try JSONValue(body: served.ask("GET", "/_users/org.couchdb.user:carol").body)
      more(&body)
      let text = String(decoding: try body.jsonText(), as: UTF8.self)
      try expect(served.ask("PUT", "/_users/org.couchdb.user:carol", text).status, equals: 201)
    }
    let first = try #require(try served.logIn("carol", "pw"))
    let second = try #require(try served.logIn("carol", "pw"))
    try expect(served.ask("DELETE", "/_session", "", [first]).status, equals: 200)
    try expect(status(first) == 401 && status(second) == 200)
    // Other roles don't end it, and count at once.
    try change { $0["roles"] = ["readers"] }
    try expect(
      JSONValue(body: served.ask("GET", "/_session", "", [second]).body)["userCtx"]["roles"],
      equals: ["readers"])
    try expect(status(second, "X-Unused: 1"), equals: 200)
    try change { $0["password"] = "new" }
    try expect(status(second), equals: 401)
    try expect(status(Served.basic("carol", "pw")) == 401 && status(Served.basic("carol", "new")) == 200)
    let third = try #require(try served.logIn("carol", "new"))
    let rev =
      try JSONValue(body: served.ask("GET", "/_users/org.couchdb.user:carol").body)["_rev"].string ?? ""
    try expect(served.ask("DELETE", "/_users/org.couchdb.user:carol?rev=\(rev)").status, equals: 200)
    try expect(status(third) == 401 && status(Served.basic("carol", "new")) == 401)
    // A user that is made anew under the name isn't the one of the cookie.
    try served.add("carol", "new")
    try expect(status(third), equals: 401)
  }

  @Test("cookies that are forged, changed or another server's are none") func forged() throws {
    let (served, other) = (try Served(), try Served())
    let cookie = try #require(try served.logIn("carol", "pw"))
    let foreign = try #require(try other.logIn("carol", "pw"))
    let value = cookie.dropFirst("Cookie: AuthSession=".count)
    var bytes = [UInt8](try #require(Data(base64Encoded: Self.padded(value))))
    // The signed part with root's name.
    let rest = bytes[5...]
    let raised = Data(Array("root:".utf8) + rest.drop { $0 == UInt8(ascii: ":") }).base64EncodedString()
    bytes[bytes.count - 1] ^= 1
    let flipped = Data(bytes).base64EncodedString()
    let plain = Data("root:69000000:x".utf8).base64EncodedString()
    for forged in [
      String(foreign.dropFirst("Cookie: AuthSession=".count)), raised, flipped, plain, "",
      String(value.dropLast(4)), value + "AAAA",
    ] {
      let header = "Cookie: AuthSession=" + Self.unpadded(forged)
      try expect(served.ask("GET", "/db", "", [header]).status, equals: 401, "\(forged)")
      try expect(
        JSONValue(body: served.ask("GET", "/_session", "", [header]).body)["userCtx"]["name"].isNull,
        "\(forged)")
    }
    try expect(served.ask("GET", "/db", "", [cookie]).status, equals: 200)
    // A name of the file isn't one of the database, even with a document.
    try served.add("root", "pw")
    try expect(served.ask("GET", "/db", "", [Served.basic("root", "pw")]).status, equals: 401)
    try expect(served.logIn("root", "pw") == nil)
  }

  private static func unpadded(_ text: String) -> String {
    text.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_").filter {
      $0 != "="
    }
  }

  private static func padded(_ text: some StringProtocol) -> String {
    var text = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
    while text.utf8.count % 4 != 0 { text += "=" }
    return text
  }

  @Test(
    "only members replicate over WebSockets, and design documents take an administrator",
    arguments: someEngines)
  func webSockets(_ engine: EngineName) throws {
    let served = try Served(engine)
    let databases = TestDatabases()
    try served.database.save("there", ["n": 1])
    let local = try databases.open(.lmdb)
    try local.save("here", ["n": 2])
    for (user, code) in [(nil, 401), ("none", 401), ("dave", 403)] as [(String?, Int)] {
      try expect(served.sync(local, as: user).error?.code, equals: code, "\(user ?? "nobody")")
    }
    try expect(local.documentCount == 1 && served.database.documentCount == 1)
    try expect(served.sync(local, as: "carol").error == nil)
    try expect(local.documentCount == 2 && served.database.documentCount == 2)
    // What carol may not write isn't taken, and the rest is.
    try local.save("_design/d", ["language": "javascript"])
    try local.save("more", ["n": 3])
    _ = try served.sync(local, as: "carol")
    try expect(served.database.document("_design/d") == nil && served.database.document("more") != nil)
    try expect(
      served.ask(
        "PUT", "/db/_design/v",
        #"{"validate_doc_update":"function (d, o, u) { if (d.by && d.by !== u.name) { throw({forbidden: 'not yours'}); } }"}"#
      ).status, equals: 201)
    try local.save("carols", ["by": "carol"])
    try local.save("daves", ["by": "dave"])
    _ = try served.sync(local, as: "carol")
    try expect(served.database.document("carols") != nil && served.database.document("daves") == nil)
    // A public database lets everybody in.
    try expect(served.ask("PUT", "/db/_security", "{}").status, equals: 200)
    try expect(served.sync(try databases.open(.lmdb), as: nil, .pull).error == nil)
    // The databases of the server aren't replicated so.
    for name in ["_users", "_replicator"] {
      let handshake = [
        "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", Served.root,
      ]
      try expect(served.ask("GET", "/\(name)/_blipsync", "", handshake).status, equals: 404, "\(name)")
      try expect(
        served.ask("GET", "/\(name)/_blipsync", "", handshake.dropLast()).status, equals: 401, "\(name)")
    }
  }

  @Test("a WebSocket ends with the rights of its user", arguments: someEngines)
  func revoked(_ engine: EngineName) throws {
    let served = try Served(engine)
    let databases = TestDatabases()
    let takes: [() throws -> Void] = [
      {
        let path = "/_users/org.couchdb.user:carol"
        let rev = try JSONValue(body: served.ask("GET", path).body)["_rev"].string ?? ""
        try expect(served.ask("DELETE", "\(path)?rev=\(rev)").status, equals: 200)
      },
      {
        try expect(served.ask("PUT", "/db/_security", #"{"members":{"names":["dave"]}}"#).status, equals: 200)
      },
    ]
    for take in takes {
      let local = try databases.open(.lmdb)
      var configuration = ReplicatorConfiguration(
        local, try .url("ws://127.0.0.1:\(served.listener.port ?? 0)/db"))
      configuration.isContinuous = true
      configuration.connection.authenticator = .basic(name: "carol", password: "pw")
      let replicator = Replicator(configuration)
      replicator.start()
      eventually { replicator.status.activity == .idle }
      let count = try local.documentCount
      try take()
      eventually { replicator.status.activity == .stopped }
      let error = replicator.status.error
      expect(error?.domain == .webSocket && error?.code == 1008, "\(String(describing: error))")
      try served.database.save("secret\(count)", ["n": 1])
      try expect(local.documentCount, equals: count)
      if try JSONValue(body: served.ask("GET", "/_users/org.couchdb.user:carol").body)["name"].isNull {
        try served.add("carol", "pw")
      }
    }
  }

  @Test("a cookie is good for its time, and no longer") func expired() throws {
    let served = try Served { $0.sessionSeconds = 2 }
    let cookie = try #require(try served.logIn("carol", "pw"))
    eventually { (try? served.ask("GET", "/db", "", [cookie]).status) == 401 }
    let session = try JSONValue(body: served.ask("GET", "/_session", "", [cookie]).body)
    expect(session["userCtx"]["name"].isNull)
    try expect(served.ask("GET", "/db", "", [Served.basic("carol", "pw")]).status, equals: 200)
  }

  @Test("tokens and proxies log in where a file says so, with the roles that they bring") func headerLogins()
    throws
  {
    let directory = TemporaryDirectory()
    let file = directory.file("logins")
    try (TokenTests.file + "[chttpd_auth]\nsecret = a secret of some length\n").write(
      toFile: file, atomically: true, encoding: .utf8)
    let served = try Served { $0.loginFile = file }
    let end = Int(Date().timeIntervalSince1970) + 3_600
    func bearer(_ name: String, _ roles: String = "[]", exp: Int? = nil) -> String {
      "Authorization: Bearer "
        + TokenTests.token(#"{"sub":"\#(name)","exp":\#(exp ?? end),"_couchdb.roles":\#(roles)}"#)
    }
    func status(_ target: String, _ headers: String...) throws -> Int {
      try served.ask("GET", target, "", headers).status
    }
    let session = try JSONValue(body: served.ask("GET", "/_session", "", [bearer("x", #"["readers"]"#)]).body)
    expect(session["userCtx"], equals: ["name": "x", "roles": ["readers"]])
    expect(session["info"]["authenticated"], equals: "jwt")
    expect(session["info"]["authentication_handlers"], equals: ["cookie", "jwt", "proxy", "default"])
    // Roles are those of the token, and names those of the security object.
    try expect(status("/db", bearer("x", #"["readers"]"#)) == 200 && status("/db", bearer("x")) == 403)
    try expect(status("/db", bearer("carol")) == 200 && status("/_all_dbs", bearer("root")) == 401)
    try expect(status("/_all_dbs", bearer("x", #"["_admin"]"#)), equals: 200)
    try expect(status("/db", bearer("carol", exp: 1)), equals: 401)
    let expired = try JSONValue(body: served.ask("GET", "/db", "", [bearer("carol", exp: 1)]).body)
    expect(expired, equals: ["error": "unauthorized", "reason": "exp not in future"])
    try expect(status("/", "Authorization: Bearer x.y.z"), equals: 400)
    // The header has more bytes than the server reads, and the connection ends.
    let large = "Authorization: Bearer " + String(repeating: "A", count: 20_000)
    try expect([400, 431].contains(status("/", large)))
    // Who has the name of an administrator isn't one, and replications and their documents are for those with passwords.
    let job = #"{"source":"db","target":"db2","create_target":true}"#
    for path in ["/_replicate", "/_replicator"] {
      try expect(served.ask("POST", path, job, [bearer("root", #"["readers"]"#)]).status, equals: 403)
    }
    try expect(served.ask("POST", "/_replicate", job, [bearer("x", #"["_admin"]"#)]).status, equals: 200)
    // Over a WebSocket too.
    let handshake = [
      "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol: BLIP_3+CBMobile_3",
    ]
    for (header, wanted) in [
      (bearer("x", #"["readers"]"#), 101), (bearer("x"), 403), (bearer("x", exp: 1), 401),
    ] {
      try expect(served.ask("GET", "/db/_blipsync", "", handshake + [header]).status, equals: wanted)
    }
    // A proxy.
    let token = Hex.text(TokenTests.mac("x", Array("a secret of some length".utf8), EVP_sha256()))
    let proxy = [
      "X-Auth-CouchDB-UserName: x", "X-Auth-CouchDB-Token: \(token)", "X-Auth-CouchDB-Roles: readers",
    ]
    try expect(served.ask("GET", "/db", "", proxy).status, equals: 200)
    try expect(served.ask("GET", "/db", "", Array(proxy.dropLast())).status, equals: 403)
    try expect(served.ask("GET", "/db", "", [proxy[0], proxy[2]]).status, equals: 401)
    try expect(
      JSONValue(body: served.ask("GET", "/_session", "", proxy).body)["info"]["authenticated"],
      equals: "proxy")
    // Without the file neither names anybody.
    let plain = try Served()
    try expect(plain.ask("GET", "/db", "", [bearer("carol")]).status, equals: 401)
    try expect(plain.ask("GET", "/db", "", proxy).status, equals: 401)
  }

  @Test("a file of logins that can't be used stops the start") func wrongLogins() throws {
    let directory = TemporaryDirectory()
    let file = directory.file("logins")
    try "[jwt_keys]\nhmac:a = x\n".write(toFile: file, atomically: true, encoding: .utf8)
    var configuration = SyncListenerConfiguration(folder: try DatabaseFolder(directory.path + "/d"))
    configuration.servesHTTP = true
    func problem() -> String {
      do {
        try SyncListener(configuration).start()
        return ""
      } catch { return "\(error)" }
    }
    configuration.loginFile = file
    expect(problem().contains("needs users with passwords"), "\(problem())")
    configuration.authenticator = .basic { _, _ in false }
    expect(problem().contains("line 2: the secret hmac:a isn't base64"), "\(problem())")
    configuration.servesHTTP = false
    expect(problem().contains("needs servesHTTP"), "\(problem())")
  }

  @Test("a flood of wrong logins doesn't stop who has a cookie") func flood() throws {
    let served = try Served { $0.passwordIterations = 100_000 }
    let cookie = try #require(try served.logIn("carol", "pw"))
    let clients = try (0..<40).map { _ in try RawClient(UInt16(served.listener.port ?? 0)) }
    for (number, client) in clients.enumerated() {
      let body = #"{"name":"u\#(number)","password":"x"}"#
      try client.send(
        "POST /_session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
      )
    }
    // Writers and readers have threads, whatever is being hashed.
    for number in 0..<20 {
      try expect(served.ask("PUT", "/db/d\(number)", "{}", [cookie]).status, equals: 201)
      try expect(served.ask("GET", "/db/d\(number)", "", [cookie]).status, equals: 200)
    }
    let statuses = try clients.map { try $0.answer(to: "POST").status }
    expect(statuses.allSatisfy { $0 == 401 || $0 == 503 || $0 == 429 }, "\(statuses)")
  }
}
