import Fleece
import HTTP
import Network
import Replication
import ReplicationNetwork
import Transport

/// Asks a server of the CouchDB family for what belongs to no database. Its calls wait.
package final class HTTPServerClient: Sendable {
  /// The most bytes of an answer.
  private static let mostBytes = 64 << 20

  private let requester: DatabaseRequester
  /// What says who the user is, and how connections are made.
  package let connector: HTTPConnector

  /// Makes a client for a part of a server, such as `http://host:port/_scheduler`. Throws `ReplicationError` for what isn't a URL.
  package init(_ url: String, _ options: (HTTPConnector) throws -> Replication.ConnectionOptions) throws {
    guard let connector = try ReplicatorTarget.httpURL(url).connector as? HTTPConnector else {
      throw ReplicationError(
        .network, ReplicationError.NetworkCode.invalidURL.rawValue, "the URL isn't one of HTTP")
    }
    self.connector = connector
    let options = try options(connector)
    do throws(TransportClose) {
      requester = DatabaseRequester(
        try HTTPClient(HTTPClientSettings(options, connector.database)), connector.database,
        firstPause: options.firstPause)
    } catch { throw ReplicationError(end: error) }
  }

  deinit { requester.close() }

  /// The JSON of a `GET`. Throws `ReplicationError` with the status if that isn't 200.
  package func json(_ path: String, _ query: [(String, String)] = []) throws -> JSONValue {
    let waiter = BlockingWaiter<Result<HTTPClientAnswer, ReplicationError>>()
    requester.ask(requester.request("GET", path, query), limit: Self.mostBytes) { waiter.finish($0) }
    let answer = try waiter.wait().get()
    guard answer.status == 200 else { throw answer.error("asking for \(path)") }
    do {
      return try answer.body.withUnsafeBytes { bytes throws(FleeceError) in try JSONValue(json: bytes) }
    } catch { throw ReplicationError.malformed("the answer of the server isn't JSON") }
  }
}
