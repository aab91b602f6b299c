import CPostgres
import Glibc
import Storage

/// The order in which the hosts of a location are asked, where one of them doesn't answer.
///
/// libpq goes on to the next host when one refuses. One that says nothing, as a machine without power or a process that was stopped,
/// would take all the time. So it is put behind the others, and new connections leave it there for a minute.
struct HostOrder {
  private static let seconds = 60
  private static let known = Lock<[String: HostOrder]>([:])

  /// The settings with an item for each host, `host`, `hostaddr` and `port`, in another order than that of the location.
  let words: [(name: String, value: String)]
  /// The number of hosts.
  let count: Int
  private let end = Deadline(seconds: seconds)

  /// The order that was found out in the last minute; nil for that of the location.
  static func current(_ location: PostgresLocation) -> HostOrder? {
    known.withLock { known in
      guard let order = known[location.connection] else { return nil }
      if !order.end.isOver { return order }
      known[location.connection] = nil
      return nil
    }
  }

  /// Keeps the order for new connections.
  func keep(_ location: PostgresLocation) { Self.known.withLock { $0[location.connection] = self } }

  /// The order of a connection that is being made, with the host last that hasn't answered. Nil if there is no other one.
  init?(behind handle: OpaquePointer) {
    let lists = Self.settings(of: handle, ["host", "hostaddr", "port"]).map { name, value in
      (name: name, items: value.split(separator: ",", omittingEmptySubsequences: false).map(String.init))
    }
    func items(_ name: String) -> [String] { lists.first { $0.name == name }?.items ?? [] }
    let hosts = items("host")
    let names = hosts.isEmpty ? items("hostaddr") : hosts
    let ports = items("port")
    let asked = (text(PQhost(handle)), text(PQport(handle)))
    guard names.count > 1,
      let place = names.indices.first(where: { place in
        names[place] == asked.0 && (ports.count < names.count || ports[place] == asked.1)
      })
    else { return nil }
    count = names.count
    words = lists.map { name, items in
      // A list of one is for all hosts.
      (
        name,
        (items.count == names.count ? Array(items[(place + 1)...] + items[...place]) : items).joined(
          separator: ",")
      )
    }
  }

  /// The settings of a connection, also those of its service and of the environment, that aren't empty.
  static func settings(of handle: OpaquePointer, _ names: [String]) -> [(name: String, value: String)] {
    guard let options = PQconninfo(handle) else { return [] }
    defer { PQconninfoFree(options) }
    var found: [(name: String, value: String)] = []
    var next = options
    while let keyword = next.pointee.keyword {
      let name = String(cString: keyword)
      if names.contains(name), let value = next.pointee.val, value.pointee != 0 {
        found.append((name, String(cString: value)))
      }
      next += 1
    }
    return found
  }
}

private func text(_ value: UnsafeMutablePointer<CChar>?) -> String { value.map { String(cString: $0) } ?? "" }
