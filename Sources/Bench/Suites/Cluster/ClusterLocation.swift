import FoundationEssentials
import Storage
import Touchstone

/// The PostgreSQL server of a run of the suite `cluster`: a location without a name of a database.
struct ClusterLocation: Sendable {
  /// The location of all databases, as it was given.
  private let folder: String
  /// Where the server listens.
  let upstream: DelayingProxy.Upstream
  /// The location without its password.
  private let parts: URLComponents
  /// What processes that use the location without its password find in their environment.
  let environment: [String: String]

  /// Reads the location of the settings. Throws `invalidArgument` if there is none, or if it isn't a URL with one host.
  init(_ settings: BenchSettings) throws {
    guard let text = settings.location else {
      throw StorageError(
        .invalidArgument, "the suite cluster needs --location, a server for its databases: postgres://host/db"
      )
    }
    guard var parts = URLComponents(string: text), parts.scheme != nil, parts.fragment == nil else {
      throw StorageError(
        .invalidArgument, "--location isn't a URL such as postgres://host/db, without a # and a name")
    }
    func item(_ name: String) -> String? { parts.queryItems?.last { $0.name == name }?.value }
    let host = item("host") ?? parts.host ?? ""
    let port = item("port").flatMap { Int($0) } ?? parts.port ?? 5_432
    guard !host.isEmpty, !host.contains(",") else {
      throw StorageError(.invalidArgument, "--location needs one host, in its place or as ?host=/directory")
    }
    folder = text
    upstream = host.hasPrefix("/") ? .socket("\(host)/.s.PGSQL.\(port)") : .host(host, port: port)
    environment = (item("password") ?? parts.password).map { ["PGPASSWORD": $0] } ?? [:]
    parts.password = nil
    parts.queryItems = parts.queryItems?.filter { $0.name != "password" }
    self.parts = parts
  }

  /// The location of a database.
  func database(_ name: String) -> String { "\(folder)#\(name)" }

  /// The location of all databases for an argument of a process, without its password. Through a proxy if there is one.
  func argument(_ proxy: DelayingProxy?) throws -> String {
    var parts = parts
    if let proxy {
      parts.host = ""
      parts.port = nil
      var items = (parts.queryItems ?? []).filter { $0.name != "host" && $0.name != "port" }
      // The name of a user stands before the host, which there is none of.
      if let user = parts.user { items.append(URLQueryItem(name: "user", value: user)) }
      parts.user = nil
      parts.queryItems =
        items + [
          URLQueryItem(name: "host", value: proxy.directory), URLQueryItem(name: "port", value: "5432"),
        ]
    }
    guard let text = parts.string else {
      throw StorageError(.invalidArgument, "--location can't be led through a proxy")
    }
    return text
  }
}
