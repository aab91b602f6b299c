import Fleece
import TestSupport
import Testing

@testable import HTTPAPI
@testable import TouchstoneServer

/// The servers that replications of a listener reach.
@Suite struct ReplicationHostTests {
  private func isReached(
    _ url: String, proxy: String? = nil, _ hosts: SyncListenerConfiguration.ReplicationHosts
  ) throws -> Bool {
    var remote = try RemoteDatabase(url: url)
    remote.proxy = proxy
    return try ListenerTargets(hosts).refusal(of: remote) == nil
  }

  @Test("hosts are compared as a whole, with a port if one is named") func names() throws {
    let hosts = SyncListenerConfiguration.ReplicationHosts.hosts([
      "Couch.example", "10.0.0.5:5984", "[fd00::1]",
    ])
    for url in [
      "http://couch.example/db", "https://me:secret@COUCH.example:6984/db", "ws://10.0.0.5:5984/db",
      "http://[fd00::1]:5984/db",
    ] {
      try expect(isReached(url, hosts), "\(url)")
    }
    for url in [
      "http://couch.example.evil/db", "http://evil.couch.example/db", "http://10.0.0.5/db",
      "http://10.0.0.5:22/db",
      "http://couch.example@evil/db", "http://couch.example:80@127.0.0.1/db", "http://evil?@couch.example/",
      "http://169.254.169.254/latest", "http://[fd00::2]/db",
    ] {
      try expect(!isReached(url, hosts), "\(url)")
    }
  }

  @Test("a public URL names the listener's own databases, and nothing else does") func publicURLs() throws {
    let targets = try ListenerTargets(
      .none,
      publicURLs: ["https://DB.example", "http://example:8080/couch/", "https://[fd00::1]:444/a%2Fb/c"])
    func name(_ url: String) throws -> String? { try targets.ownName(of: RemoteDatabase(url: url)) }
    for (url, wanted) in [
      ("https://db.example/travel", "travel"), ("https://db.example:443/travel/", "travel"),
      ("wss://db.example/travel", "travel"), ("https://me:secret@db.EXAMPLE/a%2Fb", "a/b"),
      ("http://example:8080/couch/travel", "travel"), ("https://[fd00::1]:444/a%2Fb/c/d", "d"),
    ] {
      try expect(name(url), equals: wanted, "\(url)")
    }
    for url in [
      "http://db.example/travel", "https://db.example:444/travel", "https://db.example.evil/travel",
      "https://evil/db.example/travel", "https://db.example@evil/travel", "https://evil.db.example/travel",
      "https://db.example/couch/travel", "http://example:8080/travel", "http://example:8080/other/travel",
      "http://example/couch/travel", "https://[fd00::1]:444/a/b/c/d", "http://127.0.0.1:4984/travel",
      "https://db.example?x/travel",
    ] {
      try expect(name(url) == nil, "\(url)")
    }
    for url in [
      "db.example", "ftp://db.example", "https://", "https://me:secret@db.example", "https://db.example/?x",
      "https://db.example:x", "https://db.example:", "https://db.example:0", "https://db.example:99999",
      "https://db exa.mple", "https://*", "https://[::1", "https://[::1]x", "https://db.example/../x",
    ] {
      let error = try thrown(SyncListenerError.self) { _ = try ListenerTargets(.none, publicURLs: [url]) }
      expect(error?.kind == .badRequest && error?.description.contains("'\(url)'") == true, "\(url)")
    }
  }

  @Test("a proxy has to be among them") func proxies() throws {
    let hosts = SyncListenerConfiguration.ReplicationHosts.hosts(["couch.example", "proxy.example:3128"])
    try expect(isReached("http://couch.example/", proxy: "http://me:secret@proxy.example:3128", hosts))
    for proxy in ["http://127.0.0.1:8080", "socks5://proxy.example", "proxy.example:3128", "http://"] {
      try expect(!isReached("http://couch.example/", proxy: proxy, hosts), "\(proxy)")
    }
  }

  @Test("by default others are reached only from a listener for this machine") func defaults() throws {
    try expect(isReached("http://couch.example/", .all))
    try expect(!isReached("http://couch.example/", .none))
    var configuration = SyncListenerConfiguration()
    expect(configuration.reachableHosts, equals: .all)
    configuration.address = "0.0.0.0"
    expect(configuration.reachableHosts, equals: SyncListenerConfiguration.ReplicationHosts.none)
    configuration.replicationHosts = .hosts(["a"])
    expect(configuration.reachableHosts, equals: .hosts(["a"]))
  }
}
