// How the tests connect two databases: as databases of one process, or over BLIP. The variable TOUCHSTONE_LINK says which:
// `blip` is BLIP through a pipe.

import BLIP
import Foundation
import Replication
import Touchstone

@testable import ReplicationBLIP

/// Whether the tests replicate over BLIP.
let linksByBLIP = ProcessInfo.processInfo.environment["TOUCHSTONE_LINK"] == "blip"

/// Connects to a database in the way of this run.
func connection(to database: Database, _ options: Responder.Options = Responder.Options())
  -> any PeerConnector
{
  linksByBLIP ? pipeConnector(database, options) : LocalConnector(database, options)
}

/// Connects to a database over BLIP. `clientBytes` and `serverBytes` see what each side sends.
func pipeConnector(
  _ database: Database, _ options: Responder.Options = Responder.Options(),
  subprotocol: String? = ReplicationProtocol.offered[0]
) -> BLIPConnector {
  BLIPConnector(remoteID: LocalConnector(database).remoteID, name: database.path) { _, done in
    let (client, server) = PipeTransport.pair()
    BLIPResponder(BLIPConnection(server, name: "server"), database, options).start()
    done(.success(BLIPConnector.Opened(client, subprotocol: subprotocol)))
  }
}
