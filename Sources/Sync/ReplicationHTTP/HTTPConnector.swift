import Fleece
import Network
import Replication
import ReplicationNetwork
import Transport

/// Connects to a database over HTTP: looks whether it is there, and makes it if that is wanted.
package struct HTTPConnector: PeerConnector {
  let database: HTTPDatabaseURL

  package var remoteID: String { database.remoteID }
  /// The user that the URL names.
  package var userName: String? { database.name }
  /// Whether the URL has a password too.
  package var hasPassword: Bool { database.password != nil }
  package var name: String { database.remoteID }

  package func connect(_ options: ConnectionOptions, _ done: @escaping Completion<any Peer>) {
    let requester: DatabaseRequester
    do throws(TransportClose) {
      requester = DatabaseRequester(
        try HTTPClient(HTTPClientSettings(options, database)), database, firstPause: options.firstPause)
    } catch { return done(.failure(ReplicationError(end: error))) }
    open(requester, creating: options.createsDatabase ? options.creationParameters : nil, done)
  }

  /// Makes the database with these parameters if there is none, unless they are nil.
  private func open(
    _ requester: DatabaseRequester, creating parameters: [(name: String, value: String)]?,
    _ done: @escaping Completion<any Peer>
  ) {
    requester.ask(requester.request("GET", ""), once: true) { result in
      switch result {
      case .failure(let error): done(.failure(error))
      case .success(let answer):
        switch answer.status {
        case 200..<300: done(.success(HTTPPeer(requester, instance: answer.instance)))
        case 404 where parameters != nil: create(requester, parameters ?? [], done)
        default: done(.failure(answer.error("opening the database")))
        }
      }
    }
  }

  private func create(
    _ requester: DatabaseRequester, _ parameters: [(name: String, value: String)],
    _ done: @escaping Completion<any Peer>
  ) {
    let query = parameters.map { (HTTPDatabaseURL.escaped($0.name), $0.value) }
    requester.ask(requester.request("PUT", "", query)) { result in
      switch result {
      case .failure(let error): done(.failure(error))
      case .success(let answer):
        switch answer.status {
        // Another one has made it meanwhile.
        case 200..<300, 412: open(requester, creating: nil, done)
        default: done(.failure(answer.error("making the database")))
        }
      }
    }
  }
}

extension ReplicatorTarget {
  /// A database of the CouchDB family. Throws an error of the domain `network` (`invalidURL`) for what isn't
  /// its URL.
  package static func httpURL(_ url: String) throws -> ReplicatorTarget {
    guard let database = HTTPDatabaseURL(url) else {
      throw ReplicationError(
        .network, ReplicationError.NetworkCode.invalidURL.rawValue,
        "the URL of a database has the form http://[name[:password]@]host:port/name, or https://…")
    }
    return ReplicatorTarget(HTTPConnector(database: database))
  }
}

extension HTTPClientSettings {
  /// The settings of a connection.
  init(_ options: Replication.ConnectionOptions, _ database: HTTPDatabaseURL) {
    self.init()
    take(options)
    headers = options.headers
    switch options.authenticator {
    case nil:
      if let name = database.name {
        let password = database.password ?? Secret("")
        authentication =
          database.session.map { .session(name: name, password: password, url: $0) }
          ?? .basic(name: name, password: password)
      }
    case .basic(let name, let password, let answersChallenge):
      authentication = .basic(name: name, password: Secret(password), answersChallenge: answersChallenge)
    case .login(let name, let password):
      authentication =
        database.session.map { .session(name: name, password: Secret(password), url: $0) }
        ?? .basic(name: name, password: Secret(password))
    case .bearer(let token): authentication = .bearer(Secret(token))
    case .session(let id, let cookieName): authentication = .cookie(name: cookieName, value: Secret(id))
    // These are what `take` has taken.
    case .certificate, .pkcs12: break
    }
  }
}
