import CAvahi
import Logs
import System

/// A service that is announced in the local network, as long as this exists and Avahi's daemon runs. Where there is none, nothing
/// happens; a daemon that comes later is told.
package final class ServiceAnnouncement: Sendable {
  /// What the library's thread and others share.
  private final class Shared: AvahiClient.Handler, @unchecked Sendable {
    let service: ServiceDescription
    /// The name under which it is announced now.
    let announced = Lock<String?>(nil)
    // Only the library's thread uses these while it runs.
    var name: String
    var group: UnsafeMutableRawPointer?
    let functions: CAvahiFunctions
    /// How often a name that another service has was changed.
    var renamings = 0
    static let mostRenamings = 100

    init(_ service: ServiceDescription, _ functions: CAvahiFunctions) {
      self.service = service
      self.functions = functions
      name = service.name
    }

    func daemonRuns(_ client: AvahiClient, _ pointer: UnsafeMutableRawPointer) {
      if group == nil {
        group = functions.entry_group_new(
          pointer,
          { group, state, context in
            guard let group, let context else { return }
            Unmanaged<Shared>.fromOpaque(context).takeUnretainedValue().changed(group, Int(state))
          }, Unmanaged.passUnretained(self).toOpaque())
      }
      guard let group else { return fail("the library can't announce") }
      register(group)
    }

    func daemonIsGone(_ client: AvahiClient) {
      announced.withLock { $0 = nil }
      if let group { _ = functions.entry_group_reset(group) }
    }

    private func register(_ group: UnsafeMutableRawPointer) {
      var text: UnsafeMutableRawPointer?
      // The list grows at its front.
      for (name, value) in service.attributes.sorted(by: { $0.key > $1.key }) {
        let bytes = Array("\(name)=\(value)".utf8)
        text = functions.string_list_add_arbitrary(text, bytes, bytes.count)
      }
      defer { functions.string_list_free(text) }
      let version =
        switch service.version {
        case .any: CAVAHI_UNSPECIFIED
        case .four: CAVAHI_IPV4
        case .six: CAVAHI_IPV6
        }
      while true {
        let error = functions.entry_group_add_service_strlst(
          group, Int32(CAVAHI_UNSPECIFIED), Int32(version), 0, name, service.type, nil, nil,
          service.port,
          text)
        if error == Int32(CAVAHI_COLLISION), rename() { continue }
        guard error == 0 else { return fail(functions.strerror(error).map { String(cString: $0) } ?? "") }
        break
      }
      let error = functions.entry_group_commit(group)
      if error != 0 { fail(functions.strerror(error).map { String(cString: $0) } ?? "") }
    }

    private func changed(_ group: UnsafeMutableRawPointer, _ state: Int) {
      switch state {
      case Int(CAVAHI_GROUP_ESTABLISHED):
        Log.write(.info, .network, nil, "DNS-SD: announced \(service.type) on port \(service.port)")
        announced.withLock { $0 = name }
      case Int(CAVAHI_GROUP_COLLISION):
        guard rename() else { return fail("every name is taken") }
        _ = functions.entry_group_reset(group)
        register(group)
      case Int(CAVAHI_GROUP_FAILURE): fail("the daemon refuses")
      default: announced.withLock { $0 = nil }
      }
    }

    /// Takes the next name. False if there were too many.
    private func rename() -> Bool {
      renamings += 1
      guard renamings <= Self.mostRenamings, let next = functions.alternative_service_name(name) else {
        return false
      }
      name = String(cString: next)
      functions.free(next)
      return true
    }

    private func fail(_ reason: String) {
      announced.withLock { $0 = nil }
      Log.write(.warning, .network, nil, "DNS-SD: \(service.type) can't be announced: \(reason)")
    }
  }

  private let shared: Shared?
  private let client = Lock<AvahiClient?>(nil)

  /// Announces a service from now on. Does nothing where Avahi isn't there. Throws `DiscoveryError` for a description that
  /// can't be announced anywhere.
  package convenience init(_ service: ServiceDescription) throws {
    try self.init(service, AvahiLibrary.system)
  }

  init(_ service: ServiceDescription, _ library: AvahiLibrary?) throws {
    if let problem = service.problem { throw DiscoveryError(problem) }
    guard let library else {
      shared = nil
      Log.write(.verbose, .network, nil, "DNS-SD: there is no Avahi here; nothing is announced")
      return
    }
    let shared = Shared(service, library.functions.pointee)
    self.shared = shared
    do {
      let client = try AvahiClient(library, shared)
      self.client.withLock { $0 = client }
      client.start()
    } catch { Log.write(.verbose, .network, nil, "DNS-SD: nothing is announced: \(error)") }
  }

  deinit { cancel() }

  /// The name under which it is announced now; nil if it isn't yet, or where Avahi isn't there.
  package var announcedName: String? { shared?.announced.withLock { $0 } }

  /// Withdraws it.
  package func cancel() {
    guard let client = client.withLock({ $0.take() }), let shared else { return }
    client.close {
      if let group = shared.group { _ = shared.functions.entry_group_free(group) }
      shared.group = nil
    }
    shared.announced.withLock { $0 = nil }
  }
}
