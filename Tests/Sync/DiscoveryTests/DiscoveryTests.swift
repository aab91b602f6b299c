import Foundation
import Storage
import TestSupport
import Testing
import Touchstone
import TouchstoneServer
import TouchstoneSync

@testable import Discovery

/// What holds on every machine, with Avahi or without.
@Suite struct DiscoveryWithoutAvahiTests {
  private func service(_ change: (inout ServiceDescription) -> Void = { _ in }) -> ServiceDescription {
    var service = ServiceDescription(
      name: "kitchen", type: "_touchstone._tcp", port: 4984, attributes: ["tls": "0"])
    change(&service)
    return service
  }

  @Test func whereThereIsNoLibraryNothingHappens() throws {
    let announcement = try ServiceAnnouncement(service(), nil)
    expect(announcement.announcedName == nil)
    announcement.cancel()
    let browser = try ServiceBrowser("_touchstone._tcp", nil) { _ in }
    expect(browser.services, equals: [])
    browser.cancel()
  }

  @Test(arguments: ["/nosuch/libavahi-client.so.3", "libc.so.6", ""])
  func aLibraryThatIsMissingOrAnotherIsToldOf(_ path: String) {
    #expect(throws: DiscoveryError.self) { try AvahiLibrary(path: path) }
  }

  @Test func whatCanNotBeAnnouncedIsRefused() throws {
    expect(service().problem == nil)
    expect(service { $0.attributes = [:] }.problem == nil)
    let wrong: [(inout ServiceDescription) -> Void] = [
      { $0.name = "" }, { $0.name = String(repeating: "é", count: 32) }, { $0.name = "a\u{7}" },
      { $0.type = "http" },
      { $0.type = "_http._tcp.local" }, { $0.type = "_http._sctp" }, { $0.type = "_._tcp" },
      { $0.type = "_name-that-is-long._tcp" }, { $0.attributes = ["a=b": "c"] },
      { $0.attributes = ["": "c"] },
      { $0.attributes = ["a": String(repeating: "x", count: 254)] },
      {
        $0.attributes = Dictionary(
          uniqueKeysWithValues: (0..<10).map { ("\($0)", String(repeating: "x", count: 200)) })
      },
    ]
    for (index, change) in wrong.enumerated() {
      expect(service(change).problem != nil, "\(index)")
      #expect(throws: DiscoveryError.self) { try ServiceAnnouncement(service(change)) }
    }
    #expect(throws: DiscoveryError.self) { try ServiceBrowser("http") }
    #expect(throws: ReplicationError.self) { try ListenerBrowser(type: "_touchstone") }
  }

  @Test func aListenerForThisMachineIsNotAnnounced() throws {
    try withDatabase(.lmdb) { database in
      var configuration = SyncListenerConfiguration(databases: ["db": database])
      configuration.announcement = SyncListenerAnnouncement(name: "kitchen")
      #expect(throws: SyncListenerError.self) { try SyncListener(configuration).start() }
      configuration.address = "0.0.0.0"
      configuration.allowsAnyoneFromOutside = true
      configuration.announcement?.type = "nothing"
      #expect(throws: SyncListenerError.self) { try SyncListener(configuration).start() }
      // With or without Avahi it listens.
      configuration.announcement?.type = "_touchstone-x._tcp"
      let listener = SyncListener(configuration)
      try listener.start()
      expect(listener.port != nil)
      listener.stop()
      expect(listener.announcedName == nil)
    }
  }
}

/// Whether Avahi's daemon answers here. It is asked once.
private let isDaemonThere: Bool = {
  guard ServiceBrowser.isAvailable,
    let announcement = try? ServiceAnnouncement(
      ServiceDescription(name: "probe \(getpid())", type: "_touchstone-p._tcp", port: 9))
  else { return false }
  for _ in 0..<100 {
    if announcement.announcedName != nil { return true }
    usleep(50_000)
  }
  return false
}()

/// With Avahi's daemon.
@Suite(
  .serialized,
  .enabled(if: isDaemonThere, "Avahi's daemon doesn't answer: nothing can be announced here"))
struct DiscoveryTests {
  /// A type that no other test uses, and no other run.
  private let type = "_ts\(Int.random(in: 1_000_000...9_999_999))._tcp"

  @Test func aServiceIsFoundAndWithdrawn() throws {
    let seen = Lock<[[FoundService]]>([])
    let browser = try ServiceBrowser(type) { services in seen.withLock { $0.append(services) } }
    expect(browser.services, equals: [])
    let service = ServiceDescription(
      name: "Küche ✓ = 1", type: type, port: 4984, attributes: ["tls": "1", "note": "a=b", "empty": ""])
    let announcement = try ServiceAnnouncement(service)
    eventually { announcement.announcedName != nil && !browser.services.isEmpty }
    expect(announcement.announcedName, equals: service.name)
    let found = browser.services
    expect(found.count, equals: 1)
    expect(found.first?.name == service.name && found.first?.port == 4984 && found.first?.type == type)
    expect(found.first?.attributes, equals: service.attributes)
    expect(found.first?.host.hasSuffix(".local") == true && found.first?.address.isEmpty == false)
    announcement.cancel()
    expect(announcement.announcedName == nil)
    eventually { browser.services.isEmpty }
    expect(seen.withLock { $0.last }, equals: [])
    expect(seen.withLock { $0.contains(found) })
  }

  @Test func aNameThatIsTakenGetsANumber() throws {
    let service = ServiceDescription(name: "kitchen", type: type, port: 1)
    let first = try ServiceAnnouncement(service)
    eventually { first.announcedName != nil }
    let second = try ServiceAnnouncement(ServiceDescription(name: "kitchen", type: type, port: 2))
    eventually { second.announcedName != nil }
    expect(first.announcedName == "kitchen" && second.announcedName == "kitchen #2")
    let browser = try ServiceBrowser(type)
    eventually { browser.services.count == 2 }
    expect(browser.services.map(\.name), equals: ["kitchen", "kitchen #2"])
  }

  @Test func aListenerIsFoundAndReplicates() async throws {
    let databases = TestDatabases()
    let here = try databases.open(.lmdb)
    let there = try databases.open(.sqlite)
    try there.save("doc", ["n": 1])
    var configuration = SyncListenerConfiguration(databases: ["a b": there])
    configuration.address = "0.0.0.0"
    configuration.allowsAnyoneFromOutside = true
    configuration.announcement = SyncListenerAnnouncement(name: "test", type: type, attributes: ["app": "x"])
    let listener = SyncListener(configuration)
    try listener.start()
    defer { listener.stop() }
    let browser = try ListenerBrowser(type: type)
    var found: DiscoveredListener?
    for await listeners in browser.changes {
      found = listeners.first
      if found != nil { break }
    }
    let discovered = try #require(found)
    expect(discovered.name == "test" && discovered.port == listener.port && !discovered.usesTLS)
    expect(discovered.attributes, equals: ["app": "x", "tls": "0"])
    let url = discovered.url(of: "a b")
    expect(url.hasSuffix("/a%20b"))
    let replicator = Replicator(ReplicatorConfiguration(here, try .url(url)))
    replicator.start()
    for await status in replicator.statusChanges where status.activity == .stopped {
      expect(status.error == nil)
      break
    }
    try expect(here.document("doc") != nil)
  }
}
