import Bytes
import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone
import Views

@testable import HTTPAPI

/// A right that is taken away ends what it allowed: feeds of changes, and replications. `UserListenerTests` has WebSockets.
@Suite struct StandingRightTests {
  /// Logins of the users of `_users`, and of the administrator `root`.
  private final class Logins: LoginSessions {
    let cookieSeconds = 600
    private let users = Lock<UsersDatabase?>(nil)
    private let isRootGone = Lock(false)

    func take(_ users: UsersDatabase) { self.users.withLock { $0 = users } }
    func removeRoot() { isRootGone.withLock { $0 = true } }
    func check(
      _ user: String, _ password: String, from network: ByteString,
      _ completion: @escaping @Sendable (LoginResult) -> Void
    ) {
      guard let context = context(of: user) else { return completion(.failure(LoginRefusal(401, "no"))) }
      completion(.success(AcceptedLogin(context, cookie: "c")))
    }
    func context(of user: String) -> UserContext? {
      if user == "root" { return isRootGone.withLock { $0 } ? nil : Person.root }
      return users.withLock { $0 }?.find(ByteString(user)).map { UserContext(name: $0.name, roles: $0.roles) }
    }
    func renewal(of cookie: String) -> String? { nil }
    func end(_ cookie: String) {}
  }

  /// A service with the users `carol` and `re`, who has the role `readers`, and the databases `db` and `other`, of which both are members.
  private final class Served {
    let client: APIClient
    let logins = Logins()
    let timer = ManualTimer()

    init(_ engine: EngineName = .lmdb) throws {
      var configuration = DatabaseServiceConfiguration()
      configuration.logins = logins
      configuration.hasUsers = true
      configuration.passwordIterations = 10
      client = try APIClient(engine, configuration, timer: timer)
      logins.take(client.service.users)
      for name in ["_users", "db", "other"] { try make(name) }
      try add("carol", #"[]"#)
      try add("re", #"["readers"]"#)
    }

    private func make(_ name: String) throws {
      try expect(client.send("PUT", "/" + name, as: Person.root).status, equals: 201)
      guard name != "_users" else { return }
      try expect(
        client.send("PUT", "/\(name)/_security", APIClient.security, as: Person.root).status, equals: 200)
    }

    func add(_ name: String, _ roles: String) throws {
      let path = "/_users/org.couchdb.user:\(name)"
      let old = try client.send("GET", path, as: Person.root).json()["_rev"].string
      let revision = old.map { #""_rev":"\#($0)","# } ?? ""
      try expect(
        client.send(
          "PUT", path, #"{\#(revision)"type":"user","name":"\#(name)","roles":\#(roles),"password":"pw"}"#,
          as: Person.root
        ).status, equals: 201)
    }

    func remove(_ name: String) throws {
      let path = "/_users/org.couchdb.user:\(name)"
      let revision = try client.send("GET", path, as: Person.root).json()["_rev"].string ?? ""
      try expect(client.send("DELETE", "\(path)?rev=\(revision)", as: Person.root).status, equals: 200)
    }

    func secure(_ object: String, _ name: String = "db") throws {
      try expect(
        client.send("PUT", "/\(name)/_security", object, as: Person.root).status, equals: 200)
    }

    /// A feed of a kind that waits.
    func feed(_ kind: String, _ user: UserContext, _ options: String = "") throws -> Response {
      let waiting = client.service.watches.counts.waiting
      let feed = try client.send("GET", "/db/_changes?feed=\(kind)&since=now\(options)", as: user)
      expect(feed.status, equals: 200)
      eventually { client.service.watches.counts.waiting == waiting + 1 }
      return feed
    }

    func save(_ id: String) throws {
      try expect(client.send("PUT", "/db/\(id)", "{}", as: Person.root).status, equals: 201)
    }
  }

  private static let carol = UserContext(name: "carol", roles: [])
  private static let reader = UserContext(name: "re", roles: ["readers"])
  private static let kinds = ["longpoll", "continuous", "eventsource"]

  @Test("a feed ends when its user is deleted, and others go on", arguments: someEngines)
  func deleted(_ engine: EngineName) throws {
    let served = try Served(engine)
    let feeds = try Self.kinds.map { try served.feed($0, Self.carol) }
    let other = try served.feed("continuous", Self.reader)
    let admin = try served.feed("continuous", Person.root)
    try served.remove("carol")
    for feed in feeds {
      _ = feed.body()
      // It ends whole, as if its time were over: what asks next is refused.
      expect(!feed.hasFailed)
      expect(!feed.text.contains("later"))
    }
    try served.save("later")
    for feed in [other, admin] {
      eventually { String(decoding: feed.arrived, as: UTF8.self).contains("later") }
      expect(!feed.hasEnded)
      feed.cancel()
    }
    eventually { served.client.service.rights.count == 0 }
  }

  @Test("a feed ends when roles or the security object take its right away", arguments: someEngines)
  func changed(_ engine: EngineName) throws {
    let served = try Served(engine)
    for kind in Self.kinds {
      let (roles, names) = (try served.feed(kind, Self.reader), try served.feed(kind, Self.carol))
      // Another role that lets it read changes nothing.
      try served.add("re", #"["chiefs"]"#)
      try served.add("re", #"["others"]"#)
      _ = roles.body()
      expect(!names.hasEnded)
      try served.secure(#"{"members":{"names":["carol"]},"more":1}"#)
      expect(!names.hasEnded)
      try served.secure(#"{"members":{"names":["dave"]}}"#)
      _ = names.body()
      expect(!roles.hasFailed && !names.hasFailed)
      try served.add("re", #"["readers"]"#)
      try served.secure(APIClient.security)
    }
    expect(served.client.service.watches.counts.open, equals: 0)
  }

  @Test("who hasn't logged in follows a public database until it isn't one") func anonymous() throws {
    let served = try Served()
    try served.secure("{}")
    let feed = try served.feed("continuous", .anonymous)
    try served.secure(#"{"members":{"names":["carol"]}}"#)
    _ = feed.body()
    try expect(served.client.send("GET", "/db/_changes", as: .anonymous).status, equals: 401)
  }

  @Test("a feed of _users ends when its reader doesn't administer the server any more") func system() throws {
    let served = try Served()
    let feed = try served.client.send("GET", "/_users/_changes?feed=continuous&since=now", as: Person.root)
    eventually { served.client.service.watches.counts.waiting == 1 }
    // A file of users isn't followed, so it is looked at again after some time.
    served.logins.removeRoot()
    expect(!feed.hasEnded)
    served.timer.advance(by: StandingRights.interval)
    _ = feed.body()
    expect(!feed.hasFailed)
    // Nothing is looked at where nobody follows anything.
    eventually { served.client.service.rights.count == 0 }
  }

  @Test("a client that takes nothing hears no more than what it was sent before", arguments: someEngines)
  func slow(_ engine: EngineName) throws {
    let served = try Served(engine)
    for number in 0..<50 { try served.save("d\(number)") }
    let feed = try served.feed("continuous", Self.carol, "&heartbeat=1000")
    try served.secure(#"{"members":{"names":["dave"]}}"#)
    _ = feed.body()
    try served.save("secret")
    expect(!feed.text.contains("secret"))
  }

  @Test("rights that are there already at the grant are looked at once more") func raced() throws {
    let served = try Served()
    let database = try #require(try served.client.service.catalog.database("db"))
    let refused = Lock<[Int]>([])
    let grant = served.client.service.rights.grant(UserContext(name: "nobody", roles: []), .member, database)
    {
      error in refused.withLock { $0.append(error.status) }
    }
    expect(refused.withLock { $0 }, equals: [401])
    if let grant { served.client.service.rights.end(grant) }
    // An administrator of a server without logins can't lose anything.
    let open = try APIClient()
    expect(open.service.rights.grant(.everybody, .serverAdmin) { _ in } == nil)
    expect(open.service.rights.grant(.everybody, .member, database) { _ in } == nil)
  }

  // MARK: Replications

  private func replicate(_ served: Served, _ user: UserContext, _ more: String = "") throws -> Response {
    try served.client.send(
      "POST", "/_replicate", #"{"source":"db","target":"other","continuous":true\#(more)}"#, as: user)
  }

  private func documents(_ served: Served) throws -> Int {
    try served.client.service.catalog.database("other").map { Int(try $0.documentCount) } ?? 0
  }

  @Test(
    "a continuous replication of a request ends with the rights of its user", arguments: someEngines)
  func replications(_ engine: EngineName) throws {
    let served = try Served(engine)
    let takes: [() throws -> Void] = [
      { try served.remove("carol") }, { try served.secure(#"{"members":{"names":["dave"]}}"#) },
      { try served.secure(#"{"members":{"names":["dave"]}}"#, "other") },
    ]
    for (number, take) in takes.enumerated() {
      try served.save("before\(number)")
      try expect(replicate(served, Self.carol).status, equals: 202)
      eventually { (try? documents(served)) == number + 1 }
      try take()
      eventually { served.client.service.replications.all.isEmpty }
      try served.add("carol", "[]")
      try served.secure(APIClient.security)
      try served.secure(APIClient.security, "other")
      eventually { served.client.service.runningReplications == 0 }
    }
    try served.save("after")
    try expect(documents(served), equals: 3)
    expect(served.client.service.rights.count, equals: 0)
  }

  @Test("a replication of a document waits for its rights to come back") func document() throws {
    let served = try Served()
    served.client.service.start()
    try served.save("one")
    try served.secure("{}", "_replicator")
    try expect(
      served.client.send(
        "PUT", "/_replicator/job", #"{"source":"db","target":"other","continuous":true}"#, as: Self.carol
      ).status, equals: 201)
    eventually { (try? documents(served)) == 1 }
    func state() throws -> String? {
      try served.client.send("GET", "/_scheduler/docs/_replicator/job", as: Person.root).json()["state"]
        .string
    }
    try served.secure(#"{"members":{"names":["dave"]}}"#)
    eventually { (try? state()) == "crashing" }
    try served.save("two")
    try served.secure(APIClient.security)
    try expect(documents(served), equals: 1)
    // Its next try is after a wait.
    served.timer.advance(by: ReplicationJobs.firstWait)
    eventually { (try? documents(served)) == 2 }
  }
}
