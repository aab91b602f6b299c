// How the tests connect two databases: as databases of one process, or over BLIP. The variable TOUCHSTONE_LINK says which:
// `blip` is BLIP through a pipe, `listener` BLIP over a WebSocket to a listener of this process, and `http` its HTTP API.

import BLIP
import Foundation
import Network
import Replication
import ReplicationHTTP
import Storage
import Testing
import Touchstone
import TouchstoneServer
import Transport

@testable import ReplicationBLIP

private let link = ProcessInfo.processInfo.environment["TOUCHSTONE_LINK"] ?? "local"

/// Whether the tests replicate over BLIP.
let linksByBLIP = link == "blip" || link == "listener"
/// Whether they replicate over HTTP, where all leaves go both ways. Conflicts are resolved all the same in these tests.
let linksByHTTP = link == "http"

/// Connects to a database in the way of this run.
func connection(to database: Database, _ options: PassiveResponder.Options = PassiveResponder.Options())
  -> any PeerConnector
{
  switch link {
  case "blip": pipeConnector(database, options)
  case "listener": listenerConnector(database, options)
  case "http": httpConnector(database, options)
  default: LocalConnector(database, options)
  }
}

/// Connects over a WebSocket to a listener of this process. It stops when the process ends.
private func listenerConnector(_ database: Database, _ options: PassiveResponder.Options) -> any PeerConnector
{
  var configuration = SyncListenerConfiguration(databases: ["db": database])
  configuration.isReadOnly = !options.acceptsRevisions
  configuration.refusesConflicts = options.refusesConflicts
  let listener = SyncListener(configuration)
  do {
    try listener.start()
    listeners.withLock { $0.append(listener) }
    guard options.givesRevisions, let url = listener.urls.first, let target = WebSocketURL(url) else {
      return pipeConnector(database, options)
    }
    return RenamedConnector(
      inner: ReplicatorTarget.webSocketConnector(target), remoteID: LocalConnector(database).remoteID)
  } catch {
    Issue.record("a listener can't start: \(error)")
    return pipeConnector(database, options)
  }
}

/// Connects to the HTTP API of a listener of this process.
private func httpConnector(_ database: Database, _ options: PassiveResponder.Options) -> any PeerConnector {
  var configuration = SyncListenerConfiguration(databases: ["db": database])
  configuration.servesHTTP = true
  configuration.isReadOnly = !options.acceptsRevisions
  let listener = SyncListener(configuration)
  do {
    try listener.start()
    listeners.withLock { $0.append(listener) }
    guard options.givesRevisions, let url = listener.httpURL else { return pipeConnector(database, options) }
    return RenamedConnector(
      inner: try ReplicatorTarget.httpURL(url + "db").connector, remoteID: LocalConnector(database).remoteID)
  } catch {
    Issue.record("a listener can't start: \(error)")
    return pipeConnector(database, options)
  }
}

private let listeners = Lock<[SyncListener]>([])

/// The same connector with another remote ID: each listener of a database has another port.
private struct RenamedConnector: PeerConnector {
  let inner: any PeerConnector
  let remoteID: String
  var name: String { inner.name }
  func connect(_ options: ConnectionOptions, _ done: @escaping Completion<any Peer>) {
    inner.connect(options, done)
  }
}

/// Connects to a database over BLIP.
func pipeConnector(
  _ database: Database, _ options: PassiveResponder.Options = PassiveResponder.Options(),
  subprotocol: String? = ReplicationProtocol.offered[0]
) -> BLIPConnector {
  BLIPConnector(remoteID: LocalConnector(database).remoteID, name: database.path) { _, done in
    let (client, server) = PipeTransport.pair()
    BLIPResponder(BLIPConnection(server, name: "server"), database, options).start()
    done(.success(BLIPConnector.Opened(client, subprotocol: subprotocol)))
  }
}
