// What an app sees with `import TouchstoneSync`: the replicator, and what it connects to.

@_exported import Replication
@_exported import ReplicationBLIP
@_exported import ReplicationHTTP
