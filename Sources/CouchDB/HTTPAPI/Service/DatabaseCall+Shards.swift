import HTTP
import Views

// A database has one shard, on this server: clients that ask where documents are get that.

extension DatabaseCall {
  private static let range = "00000000-ffffffff"

  /// The answer to `_shards`.
  func shards() throws -> HTTPAnswer {
    try .json(["shards": [Self.range: [.string(DatabaseService.node)]]])
  }

  /// The answer to `_shards/{doc}`, whether there is such a document or not.
  func shardOfDocument() throws -> HTTPAnswer {
    try .json(["range": .string(Self.range), "nodes": [.string(DatabaseService.node)]])
  }

  /// The answer to `_sync_shards`: there is no copy to bring up to date.
  func syncShards() throws -> HTTPAnswer {
    try checkContentType()
    return .ok(status: 202)
  }
}
