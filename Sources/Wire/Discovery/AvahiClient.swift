import CAvahi
import Logs

/// A connection to Avahi's daemon, which speaks DNS-SD over multicast DNS (RFC 6763, RFC 6762), with the thread on which the
/// library calls back.
///
/// Between `init` and `close`, everything of the library's happens on that thread: the callbacks of the handler, and what they call.
/// `close` ends the thread first, so nothing is called afterwards.
final class AvahiClient: @unchecked Sendable {
  /// What happens to a client. Calls come from the library's thread.
  protocol Handler: AnyObject {
    /// The daemon runs: services may be announced and looked for.
    func daemonRuns(_ client: AvahiClient, _ pointer: UnsafeMutableRawPointer)
    /// The daemon is gone, or takes another name: what was announced is withdrawn, and what was found isn't known any more.
    func daemonIsGone(_ client: AvahiClient)
  }

  let library: AvahiLibrary
  private weak var handler: (any Handler)?
  private let poll: UnsafeMutableRawPointer
  // Only the library's thread uses it while that runs.
  private var pointer: UnsafeMutableRawPointer?

  /// Connects. If the daemon isn't there, it is waited for. Throws `DiscoveryError` if nothing of that kind is possible here.
  init(_ library: AvahiLibrary, _ handler: any Handler) throws {
    self.library = library
    self.handler = handler
    let functions = library.functions.pointee
    guard let poll = functions.threaded_poll_new() else { throw DiscoveryError("Avahi has no memory") }
    self.poll = poll
    var error: Int32 = 0
    let client = functions.client_new(
      functions.threaded_poll_get(poll), Int32(CAVAHI_NO_FAIL),
      { client, state, context in
        guard let client, let context else { return }
        Unmanaged<AvahiClient>.fromOpaque(context).takeUnretainedValue().changed(client, Int(state))
      }, Unmanaged.passUnretained(self).toOpaque(), &error)
    guard let client else {
      functions.threaded_poll_free(poll)
      throw DiscoveryError("Avahi's daemon can't be asked: \(library.message(error))")
    }
    pointer = client
  }

  /// Lets the library call back.
  func start() { _ = library.functions.pointee.threaded_poll_start(poll) }

  /// Ends the connection. `body` frees what belongs to it, when nothing calls back any more. Don't call it on the library's thread.
  func close(_ body: () -> Void) {
    let functions = library.functions.pointee
    _ = functions.threaded_poll_stop(poll)
    body()
    if let pointer { functions.client_free(pointer) }
    pointer = nil
    functions.threaded_poll_free(poll)
  }

  private func changed(_ client: UnsafeMutableRawPointer, _ state: Int) {
    // The first call comes before the client is known here.
    pointer = client
    switch state {
    case Int(CAVAHI_CLIENT_RUNNING): handler?.daemonRuns(self, client)
    case Int(CAVAHI_CLIENT_FAILURE):
      Log.write(
        .verbose, .network, nil,
        "DNS-SD: \(library.message(library.functions.pointee.client_errno(client)))")
      handler?.daemonIsGone(self)
    default: handler?.daemonIsGone(self)
    }
  }
}
