import Bytes
import CAvahi
import Logs
import System

/// A service that was found in the local network.
package struct FoundService: Sendable, Hashable {
  /// The name that people see.
  package let name: String
  /// The type, such as `_http._tcp`.
  package let type: String
  /// The name of the machine, such as `kitchen.local`.
  package let host: String
  /// A numeric address of the machine.
  package let address: String
  package let port: UInt16
  /// What it says of itself. It is what anybody in the network claims.
  package let attributes: [String: String]
}

/// Looks for services of a type in the local network, as long as this exists and Avahi's daemon runs. Where there is none, it finds
/// nothing.
package final class ServiceBrowser: Sendable {
  /// The most services that are kept: anybody may announce any number.
  package static let mostServices = 1_000

  /// What the library's thread and others share.
  private final class Shared: AvahiClient.Handler, @unchecked Sendable {
    /// A service, and the interface and the protocol on which it was seen.
    struct Place: Hashable {
      let interface: Int32
      let `protocol`: Int32
      let name: String
    }

    let type: String
    let functions: CAvahiFunctions
    let found = Lock<[Place: FoundService]>([:])
    let handler: @Sendable ([FoundService]) -> Void
    // Only the library's thread uses these while it runs.
    var client: UnsafeMutableRawPointer?
    var browser: UnsafeMutableRawPointer?
    var resolvers: [Place: UnsafeMutableRawPointer] = [:]

    init(
      _ type: String, _ functions: CAvahiFunctions, _ handler: @escaping @Sendable ([FoundService]) -> Void
    ) {
      self.type = type
      self.functions = functions
      self.handler = handler
    }

    func daemonRuns(_ client: AvahiClient, _ pointer: UnsafeMutableRawPointer) {
      self.client = pointer
      guard browser == nil else { return }
      browser = functions.service_browser_new(
        pointer, Int32(CAVAHI_UNSPECIFIED), Int32(CAVAHI_UNSPECIFIED), type, nil, 0,
        { _, interface, proto, event, name, type, domain, _, context in
          guard let context else { return }
          let shared = Unmanaged<Shared>.fromOpaque(context).takeUnretainedValue()
          guard let name, let type else { return }
          shared.browsed(Int(event), interface, proto, name, type, domain)
        }, Unmanaged.passUnretained(self).toOpaque())
    }

    func daemonIsGone(_ client: AvahiClient) {
      free()
      tell { $0 = [:] }
    }

    func free() {
      for resolver in resolvers.values { _ = functions.service_resolver_free(resolver) }
      resolvers = [:]
      if let browser { _ = functions.service_browser_free(browser) }
      browser = nil
    }

    private func browsed(
      _ event: Int, _ interface: Int32, _ proto: Int32, _ name: UnsafePointer<CChar>,
      _ type: UnsafePointer<CChar>,
      _ domain: UnsafePointer<CChar>?
    ) {
      let place = Place(interface: interface, protocol: proto, name: String(cString: name))
      switch event {
      case Int(CAVAHI_BROWSER_NEW):
        guard resolvers[place] == nil, resolvers.count < ServiceBrowser.mostServices, let client else {
          return
        }
        // It stays open, so that changes of the service are seen.
        resolvers[place] = functions.service_resolver_new(
          client, interface, proto, name, type, domain, proto, 0,
          { _, interface, proto, event, name, type, _, host, address, port, text, _, context in
            guard let context, let name else { return }
            let shared = Unmanaged<Shared>.fromOpaque(context).takeUnretainedValue()
            let place = Place(interface: interface, protocol: proto, name: String(cString: name))
            guard Int(event) == Int(CAVAHI_RESOLVER_FOUND), let type, let host, let address else {
              return shared.tell { $0[place] = nil }
            }
            shared.resolved(place, String(cString: type), String(cString: host), address, port, text)
          }, Unmanaged.passUnretained(self).toOpaque())
      case Int(CAVAHI_BROWSER_REMOVE):
        if let resolver = resolvers.removeValue(forKey: place) {
          _ = functions.service_resolver_free(resolver)
        }
        tell { $0[place] = nil }
      default: break
      }
    }

    private func resolved(
      _ place: Place, _ type: String, _ host: String, _ address: UnsafeRawPointer, _ port: UInt16,
      _ text: UnsafeMutableRawPointer?
    ) {
      var buffer = [CChar](repeating: 0, count: 64)
      guard functions.address_snprint(&buffer, buffer.count, address) != nil else { return }
      var numeric = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      // Such an address means something on its link only.
      if numeric.hasPrefix("fe80:") { numeric += "%\(place.interface)" }
      var attributes: [String: String] = [:]
      var next = text
      while let item = next {
        let bytes = UnsafeBufferPointer(
          start: functions.string_list_get_text(item), count: functions.string_list_get_size(item))
        let pair = String(decoding: bytes, as: UTF8.self)
          .split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if let name = pair.first, !name.isEmpty, attributes[String(name)] == nil {
          attributes[String(name)] = pair.count > 1 ? String(pair[1]) : ""
        }
        next = functions.string_list_get_next(item)
      }
      tell {
        $0[place] = FoundService(
          name: place.name, type: type, host: host, address: numeric, port: port, attributes: attributes)
      }
    }

    func tell(_ change: (inout [Place: FoundService]) -> Void) {
      let (before, after) = found.withLock { found in
        let before = Self.services(found)
        change(&found)
        return (before, Self.services(found))
      }
      if before != after { handler(after) }
    }

    /// Each service once, in the order of the names. An address of IPv4 goes before one of IPv6, and the latter before one of a
    /// link.
    static func services(_ found: [Place: FoundService]) -> [FoundService] {
      func rank(_ entry: (key: Place, value: FoundService)) -> (Int, Int32) {
        (
          entry.key.protocol == Int32(CAVAHI_IPV4) ? 0 : entry.value.address.hasPrefix("fe80:") ? 2 : 1,
          entry.key.interface
        )
      }
      var services: [ByteString: FoundService] = [:]
      for (_, service) in found.sorted(by: { rank($0) < rank($1) })
      where services[ByteString(service.name)] == nil {
        services[ByteString(service.name)] = service
      }
      return services.values.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    }
  }

  private let shared: Shared?
  private let client = Lock<AvahiClient?>(nil)

  /// Whether Avahi's library is there. Its daemon may not be.
  package static var isAvailable: Bool { AvahiLibrary.system != nil }

  /// Looks for services of a type from now on. `handler` gets all of them after each change, on a thread of the library, on which it
  /// must not end the browser. Throws `DiscoveryError` for what can't be a type.
  package convenience init(_ type: String, _ handler: @escaping @Sendable ([FoundService]) -> Void = { _ in })
    throws
  {
    try self.init(type, AvahiLibrary.system, handler)
  }

  init(_ type: String, _ library: AvahiLibrary?, _ handler: @escaping @Sendable ([FoundService]) -> Void)
    throws
  {
    guard ServiceDescription.isType(type) else {
      throw DiscoveryError("'\(type)' isn't a type of services such as _http._tcp")
    }
    guard let library else {
      shared = nil
      return
    }
    let shared = Shared(type, library.functions.pointee, handler)
    self.shared = shared
    do {
      let client = try AvahiClient(library, shared)
      self.client.withLock { $0 = client }
      client.start()
    } catch { Log.write(.verbose, .network, nil, "DNS-SD: nothing is found: \(error)") }
  }

  deinit { cancel() }

  /// What is there now, in the order of the names.
  package var services: [FoundService] {
    shared.map { shared in shared.found.withLock { Shared.services($0) } } ?? []
  }

  /// Ends the search. `services` stays as it is.
  package func cancel() {
    guard let client = client.withLock({ $0.take() }), let shared else { return }
    client.close { shared.free() }
  }
}
