import Bytes
import Foundation
import HTTP
import RawHTTP
import Storage
import TestTools
import Testing

@testable import Server

@Suite struct AuthenticationTests {
  private static func basic(_ text: String) -> String {
    "Authorization: Basic \(Data(text.utf8).base64EncodedString())"
  }

  @Sendable private static func who(_ request: HTTPRequest, _ responder: HTTPResponder) {
    responder.answer(HTTPAnswer(status: 200, text: request.user ?? "nobody"))
  }

  @Test func usersOfAFileAreLetIn() throws {
    let directory = TemporaryDirectory()
    let file = directory.file("users")
    let lines = [
      "# users", "", try UserFile.line(user: "alice", password: Array("secret".utf8)),
      try UserFile.line(user: "böb", password: Array("p:w ü".utf8)),
      try UserFile.line(user: "empty", password: []),
      // RFC 7914's own example of PBKDF2 isn't 32 bytes; this is "password" under 16 bytes of 0x01.
    ]
    try (lines.joined(separator: "\n") + "\n").write(toFile: file, atomically: true, encoding: .utf8)
    let server = try TestServer(
      with: { $0.authenticator = try BasicAuthenticator(realm: "a \"b\"", checker: UserFile(file)) }, Self.who
    )
    let client = try server.client()
    try expect(client.get("/", headers: [Self.basic("alice:secret")]).text, equals: "alice")
    try expect(client.get("/", headers: [Self.basic("böb:p:w ü")]).text, equals: "böb")
    try expect(client.get("/", headers: [Self.basic("empty:")]).text, equals: "empty")
    expect(server.server.connections.first?.user, equals: "empty")
    let wrong = [
      Self.basic("alice:Secret"), Self.basic("carol:secret"), "Authorization: Basic",
      "Authorization: Basic !!!",
      "Authorization: Bearer abc", Self.basic("alice"), Self.basic(":secret"),
    ]
    for header in wrong {
      let answer = try client.get("/", headers: [header])
      expect(answer.status, equals: 401, "\(header)")
      expect(answer.header("WWW-Authenticate"), equals: "Basic realm=\"a b\", charset=\"UTF-8\"")
    }
    try expect(client.get("/").status, equals: 401)
    try expect(
      client.get("/", headers: [Self.basic("alice:" + String(repeating: "a", count: 5_000))]).status,
      equals: 401)
  }

  @Test func aFileThatChangesIsReadAgain() throws {
    let directory = TemporaryDirectory()
    let file = directory.file("users")
    try (UserFile.line(user: "alice", password: Array("one".utf8)) + "\n").write(
      toFile: file, atomically: true, encoding: .utf8)
    let server = try TestServer(
      with: { $0.authenticator = try BasicAuthenticator(checker: UserFile(file)) }, Self.who)
    let client = try server.client()
    try expect(client.get("/", headers: [Self.basic("alice:one")]).status, equals: 200)
    try (UserFile.line(user: "alice", password: Array("second".utf8)) + "\n").write(
      toFile: file, atomically: true, encoding: .utf8)
    // The right password of before is remembered no longer than until the file is looked at.
    try waitUntil { try client.get("/", headers: [Self.basic("alice:one")]).status == 401 }
    try expect(client.get("/", headers: [Self.basic("alice:second")]).status, equals: 200)
    // A file with a fault in it changes nothing.
    try "nonsense\n".write(toFile: file, atomically: true, encoding: .utf8)
    usleep(1_100_000)
    try expect(client.get("/", headers: [Self.basic("alice:second")]).status, equals: 200)
  }

  @Test func aWrongFileOfUsersIsRefusedWithItsLine() throws {
    let directory = TemporaryDirectory()
    let file = directory.file("users")
    #expect(throws: HTTPServerError.self) { try UserFile(file) }
    let good = try UserFile.line(user: "a", password: [1])
    let salt = String(repeating: "00", count: 16)
    let key = String(repeating: "00", count: 32)
    let cases = [
      "a", ":x", "a:x", "a:scrypt:3:8:1:\(salt):\(key)", "a:scrypt:4096:8:1:\(salt):\(key)",
      "a:pbkdf2-sha256:99999:\(salt):\(key)", "a:scrypt:1073741824:8:1:\(salt):\(key)",
      "a:scrypt:16384:8:1:00:\(key)", "a:scrypt:16384:8:1:\(salt):00", "a:pbkdf2-sha256:10:\(salt):\(key)",
      "a:pbkdf2-sha256:99999999999:\(salt):\(key)", good,
    ]
    for line in cases {
      try "\(good)\n\(line)\n".write(toFile: file, atomically: true, encoding: .utf8)
      let error = #expect(throws: HTTPServerError.self, "\(line)") { try UserFile(file) }
      expect(error?.code, equals: .fileInvalid)
      expect(error?.message.contains("line 2"), equals: true)
    }
    for name in ["", "a:b", "a\nb", "#a", String(repeating: "a", count: 257)] {
      #expect(throws: HTTPServerError.self) { try UserFile.line(user: name, password: []) }
    }
  }

  @Test func hashesAreThoseOfTheStandards() throws {
    // PBKDF2-HMAC-SHA-256 and scrypt as Python's hashlib computes them.
    let salt = String(repeating: "01", count: 16)
    let known = [
      "pbkdf2-sha256:100000:\(salt):"
        + Self.python("pbkdf2_hmac('sha256', b'password', b'\\1' * 16, 100000)"),
      "scrypt:8192:8:1:\(salt):"
        + Self.python("scrypt(b'password', salt=b'\\1' * 16, n=8192, r=8, p=1, dklen=32)"),
    ]
    for text in known {
      guard !text.hasSuffix(":") else {
        print("skipped hashesAreThoseOfTheStandards: there is no python3")
        return
      }
      let hash = try #require(PasswordHash(text))
      expect(hash.matches(Array("password".utf8)))
      expect(!hash.matches(Array("Password".utf8)))
      expect(hash.text, equals: text)
    }
  }

  private static func python(_ call: String) -> String {
    run("python3", ["-c", "import hashlib; print(hashlib.\(call).hex(), end='')"])?.output ?? ""
  }

  @Test func rightPasswordsAreAskedForOnceAndWrongOnesSlowedDown() throws {
    let asked = Lock(0)
    let checker = ClosurePasswordChecker { user, password, completion in
      asked.withLock { $0 += 1 }
      // Later, from another thread.
      DispatchQueue.global().async { completion(user.string == "a" && password == Array("b".utf8)) }
    }
    let server = try TestServer(
      with: { $0.authenticator = try BasicAuthenticator(checker: checker) }, Self.who)
    let client = try server.client()
    for _ in 0..<50 { try expect(client.get("/", headers: [Self.basic("a:b")]).status, equals: 200) }
    expect(asked.withLock { $0 }, equals: 1)
    var statuses: [Int] = []
    for _ in 0..<50 { statuses.append(try client.get("/", headers: [Self.basic("a:x")]).status) }
    expect(statuses.prefix(4), equals: [401, 401, 401, 401])
    expect(statuses.contains(429))
    expect(asked.withLock { $0 } < 30)
    // Who was let in before isn't kept out by others of his network, and neither are other users.
    try expect(client.get("/", headers: [Self.basic("a:b")]).status, equals: 200)
    try expect(client.get("/", headers: [Self.basic("c:x")]).status, equals: 401)
  }

  @Test func loginsThatWaitAreFew() throws {
    let waiting = Lock<[@Sendable (Bool) -> Void]>([])
    let checker = ClosurePasswordChecker { _, _, completion in waiting.withLock { $0.append(completion) } }
    let server = try TestServer(
      with: {
        $0.authenticator = try BasicAuthenticator(checker: checker, pendingLogins: 8)
      }, Self.who)
    func send(_ client: RawClient) throws {
      try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\(Self.basic("a:b"))\r\n\r\n")
    }
    // Of one network a quarter, and of all together eight.
    var clients: [RawClient] = []
    for network in 1...4 {
      let own = try (0..<3).map { _ in try RawClient(server.port, from: "127.0.0.\(network)") }
      for client in own.prefix(2) { try send(client) }
      waitUntil { waiting.withLock { $0.count } == 2 * network }
      try send(own[2])
      let refused = try own[2].answer()
      expect(refused.status == 503 && refused.header("Retry-After") == "1")
      clients += own.prefix(2)
    }
    let late = try RawClient(server.port, from: "127.0.0.5")
    try send(late)
    try expect(late.answer().status, equals: 503)
    for completion in waiting.withLock({ $0 }) { completion(true) }
    for client in clients { try expect(client.answer().status, equals: 200) }
    try send(late)
    try expect(late.answer().status, equals: 200)
  }

  @Test func theMemoryOfFailedLoginsIsBounded() {
    let time = Lock(0.0)
    let throttle = LoginThrottle {
      time.withLock { time in
        time += 0.001
        return time
      }
    }
    for number in 0..<10_000 {
      for _ in 0..<5 { throttle.failed(ByteString("\(number % 100)"), ByteString("\(number)")) }
    }
    expect(throttle.count <= 4_096)
    expect(throttle.secondsToWait("99", "9999") != nil)
    expect(throttle.secondsToWait("0", "0") == nil)
  }

  @Test func failedLoginsMakeOneUserOfOneNetworkWait() {
    let time = Lock(100.0)
    let throttle = LoginThrottle { time.withLock { $0 } }
    var waits: [Double?] = []
    for _ in 0..<10 {
      throttle.failed("ann", "1.2.3.4")
      waits.append(throttle.secondsToWait("ann", "1.2.3.4"))
    }
    expect(waits, equals: [nil, nil, nil, 0.25, 0.5, 1, 2, 4, 8, 8])
    expect(throttle.secondsToWait("bob", "1.2.3.4") == nil)
    expect(throttle.secondsToWait("ann", "1.2.3.5") == nil)
    time.withLock { $0 += 7 }
    expect(throttle.secondsToWait("ann", "1.2.3.4"), equals: 1)
    time.withLock { $0 += 1 }
    expect(throttle.secondsToWait("ann", "1.2.3.4") == nil)
    throttle.succeeded("ann", "1.2.3.4")
    throttle.failed("ann", "1.2.3.4")
    expect(throttle.secondsToWait("ann", "1.2.3.4") == nil)
  }

  @Test func aClientIsToldHowLongToWait() throws {
    let time = Lock(0.0)
    let authenticator = try BasicAuthenticator(
      users: AdministratorDirectory(
        ClosurePasswordChecker { _, password, completion in completion(password == [1]) }),
      throttle: LoginThrottle { time.withLock { $0 } })
    func ask(_ user: ByteString, _ password: [UInt8]) -> [String] {
      let waiter = BlockingWaiter<LoginVerdict>()
      authenticator.check(user, password, from: "1.2.3.4") { waiter.finish($0.verdict) }
      switch waiter.wait() {
      case .allowed: return ["allowed"]
      case .refused(let status, let headers, _):
        return ["\(status)"] + headers.filter { $0.name == "Retry-After" }.map(\.value)
      }
    }
    for _ in 0..<9 {
      expect(ask("ann", [0]), equals: ["401"])
      time.withLock { $0 += 8 }
    }
    expect(ask("ann", [0]), equals: ["401"])
    expect(ask("ann", [1]), equals: ["429", "8"])
    expect(ask("bob", [1]), equals: ["allowed"])
    time.withLock { $0 += 2.5 }
    expect(ask("ann", [1]), equals: ["429", "6"])
    time.withLock { $0 += 5.5 }
    expect(ask("ann", [1]), equals: ["allowed"])
  }

  @Test func noMoreThanTwoPasswordsAreCheckedAtATime() throws {
    let counts = Lock((running: 0, most: 0, all: 0))
    let gate = CountingSemaphore()
    let authenticator = try BasicAuthenticator(
      checker: ClosurePasswordChecker { _, _, completion in
        counts.withLock { counts in
          counts.running += 1
          counts.all += 1
          counts.most = max(counts.most, counts.running)
        }
        gate.wait()
        counts.withLock { $0.running -= 1 }
        completion(false)
      })
    let ended = CountingSemaphore()
    for number in 0..<16 {
      authenticator.check(ByteString("\(number)"), [], from: "1.2.3.4") { _ in ended.signal() }
    }
    for _ in 0..<16 { gate.signal() }
    for _ in 0..<16 { ended.wait() }
    expect(counts.withLock { $0.most } <= 2 && counts.withLock { $0.all } == 16)
  }
}

/// Runs a program. Nil if it isn't there.
func run(_ program: String, _ arguments: [String]) -> (status: Int32, output: String)? {
  guard let process = try? ChildProcess(ProgramLaunch("/usr/bin/env", [program] + arguments)),
    let ending = try? process.wait(), ending != .exited(127)
  else { return nil }
  return (ending.shellStatus, process.outputText)
}
