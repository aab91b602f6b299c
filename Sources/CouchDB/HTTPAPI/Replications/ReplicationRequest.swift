import Bytes
import CCrypto
import Fleece
import Views

/// What a replication does, as the body of `_replicate` or a document of `_replicator` describes it.
struct ReplicationRequest: Sendable, Equatable {
  let source: ReplicationEndpoint
  let target: ReplicationEndpoint
  let isContinuous: Bool
  /// Whether the target is made if it isn't there.
  let createsTarget: Bool
  /// Whether the target is partitioned if it is made.
  let partitionsTarget: Bool
  /// What another server is told of the target that is made there.
  let creationParameters: JSONObject
  /// Only these documents; nil: all.
  let documentIDs: [String]?
  /// A filter function of the source: `DESIGN/FILTER`.
  let filter: String?
  /// What the filter function gets.
  let parameters: JSONObject
  /// Only documents that it describes.
  let selector: JSONValue?
  /// The sequence of the source to begin after; nil: where the last run ended.
  let since: JSONValue?
  /// Whether the next run goes on where this one ends.
  let usesCheckpoints: Bool
  /// Whether only the current revisions are replicated.
  let onlyWinners: Bool
  /// How often a lost connection is made again before the run has failed; nil: the default.
  let retries: Int?
  /// Seconds from a change to the checkpoint that has it; nil: the default.
  let checkpointInterval: Double?

  /// Reads a description. Throws the error of CouchDB for one that makes no sense.
  init(_ body: JSONValue) throws {
    guard let members = body.object else {
      throw CouchDBError(400, "bad_request", "Request body must be a JSON object")
    }
    guard var source = try ReplicationEndpoint(members["source"]),
      var target = try ReplicationEndpoint(members["target"])
    else { throw Self.missingDatabase }
    let options = Members(members)
    isContinuous = try options.flag("continuous") ?? false
    createsTarget = try options.flag("create_target") ?? false
    usesCheckpoints = try options.flag("use_checkpoints") ?? true
    onlyWinners = try options.flag("winning_revs_only") ?? false
    partitionsTarget = try options.partitionsTarget()
    creationParameters = try options.object("create_target_params") ?? [:]
    var documentIDs = try options.documentIDs
    var filter = try options.filter
    selector = try options.object("selector").map { .object($0) }
    var parameters = try options.object("query_params") ?? [:]
    guard [documentIDs != nil, filter != nil, selector != nil].count(where: { $0 }) <= 1 else {
      throw CouchDBError(400, "bad_request", "`doc_ids`,`filter`,`selector` are mutually exclusive")
    }
    if filter?.hasSameBytes(as: "_doc_ids") == true {
      guard let ids = try Members(parameters).documentIDs else {
        throw CouchDBError(400, "bad_request", "the filter `_doc_ids` needs `doc_ids` in `query_params`")
      }
      (documentIDs, filter, parameters) = (ids, nil, [:])
    }
    (self.documentIDs, self.filter, self.parameters) = (documentIDs, filter, parameters)
    since = members["since_seq"].flatMap { $0.isNull ? nil : $0 }
    retries = try options.number("retries_per_request", 0...1_000).map { Int($0) }
    checkpointInterval = try options.number("checkpoint_interval", 100...86_400_000).map { $0 / 1_000 }
    let timeout = try options.number("connection_timeout", 1...86_400_000).map { $0 / 1_000 }
    let proxy = try options.text("proxy")
    source.route(through: try options.text("source_proxy") ?? proxy, timeout)
    target.route(through: try options.text("target_proxy") ?? proxy, timeout)
    (self.source, self.target) = (source, target)
  }

  /// How often a lost connection is made again by default.
  static let usualRetries = 2

  /// Seconds from a change to the checkpoint that has it, 60 at most; nil: the default.
  var checkpointDelay: Double? { checkpointInterval.map { min($0, 60) } }

  static let missingDatabase = CouchDBError(500, "error", "Missing replicator database")

  /// The ID: 32 hexadecimal digits that what it does decides, and `+continuous` and `+create_target`. Passwords aren't in it, so
  /// changing one goes on with the same ID.
  var id: String { baseID + suffix }

  /// The ID without what is appended.
  var baseID: String {
    Self.digest([
      source.identity, target.identity, documentIDs.map { .array($0.map { .string($0) }) } ?? .null,
      filter.map { .string($0) } ?? .null, .object(parameters), selector ?? .null, since ?? .null,
      .bool(onlyWinners),
    ])
  }

  /// The name of the record that both sides keep: the digits of the ID. With a filter function of a database of this server, its text counts
  /// too: with another function the replication begins anew, as in CouchDB.
  func recordID(_ ends: ReplicationEnds) throws -> String {
    guard let filter, let source = ends.source.database else { return baseID }
    let isView = filter.hasSameBytes(as: "_view")
    let parts = (isView ? parameters["view"]?.string ?? "" : filter).split(separator: "/", maxSplits: 1)
    guard parts.count == 2 else { return baseID }
    let functions = try source.document(IncomingID.designPrefix + parts[0])?.value()[
      isView ? "views" : "filters"]
    guard let function = functions?.object?[String(parts[1])] else { return baseID }
    return Self.digest([.string(baseID), function])
  }

  private static func digest(_ parts: JSONValue) -> String {
    let text = Array(((try? parts.canonicalJSON()) ?? parts.description).utf8)
    var digest = [UInt8](repeating: 0, count: 32)
    var count = digest.count
    EVP_Q_digest(nil, "SHA256", nil, text, text.count, &digest, &count)
    return Hex.text(Array(digest.prefix(16)))
  }

  private var suffix: String { (isContinuous ? "+continuous" : "") + (createsTarget ? "+create_target" : "") }

  /// Whether a filter decides that the checkpoint of a replicator doesn't know of.
  var needsOwnCheckpoint: Bool {
    filter != nil || selector != nil || since != nil || onlyWinners || documentIDs?.isEmpty == true
  }
}

extension ReplicationEndpoint {
  /// Says how a connection gets there.
  fileprivate mutating func route(through proxy: String?, _ timeout: Double?) {
    guard case .remote(var remote) = self else { return }
    remote.proxy = proxy
    remote.timeout = timeout
    self = .remote(remote)
  }
}

/// The members of a description, with their types.
private struct Members {
  let members: JSONObject

  init(_ members: JSONObject) { self.members = members }

  private subscript(name: String) -> JSONValue? { members[name].flatMap { $0.isNull ? nil : $0 } }

  private func refuse(_ name: String, _ what: String) -> CouchDBError {
    CouchDBError(400, "bad_request", "`\(name)` must be \(what)")
  }

  func flag(_ name: String) throws -> Bool? {
    guard let value = self[name] else { return nil }
    guard let flag = value.bool else { throw refuse(name, "a boolean") }
    return flag
  }

  func text(_ name: String) throws -> String? {
    guard let value = self[name] else { return nil }
    guard let text = value.string, !text.isEmpty else { throw refuse(name, "a text") }
    return text
  }

  func object(_ name: String) throws -> JSONObject? {
    guard let value = self[name] else { return nil }
    guard let object = value.object else { throw refuse(name, "a JSON object") }
    return object
  }

  func number(_ name: String, _ range: ClosedRange<Double>) throws -> Double? {
    guard let value = self[name] else { return nil }
    guard let number = value.double, range.contains(number) else {
      throw refuse(name, "a number from \(Int(range.lowerBound)) to \(Int(range.upperBound))")
    }
    return number
  }

  /// Whether a target that is made is partitioned. Throws the errors of `PUT` of a database for its options.
  func partitionsTarget() throws -> Bool {
    let parameters = try object("create_target_params") ?? [:]
    return try DatabaseService.checkOptions { name in
      parameters["\(name)"].flatMap { $0.isNull ? nil : $0.string ?? $0.description }
    }
  }

  /// Each once, in the order of their bytes, as CouchDB has them.
  var documentIDs: [String]? {
    get throws {
      guard var value = self["doc_ids"] else { return nil }
      // A parameter of a filter may be the text that a query string would have.
      if let text = value.string, let list = try? JSONValue(body: Array(text.utf8)) { value = list }
      guard let items = value.array, case let ids = items.compactMap(\.string), ids.count == items.count
      else {
        throw refuse("doc_ids", "an array of texts")
      }
      // CouchDB takes percent-encoded IDs. Here that is so for the slash of design documents: other IDs may have percent signs of their own.
      let encoded = "_design%2F"
      let plain = ids.map { id in
        id.prefix(encoded.count).uppercased() == encoded.uppercased()
          ? IncomingID.designPrefix + id.dropFirst(encoded.count) : id
      }
      return Set(plain.map { ByteString($0) }).sorted().map(\.string)
    }
  }

  var filter: String? {
    get throws {
      guard let name = try text("filter") else { return nil }
      // Those of `_changes`.
      if ["_view", "_design", "_doc_ids"].contains(where: { name.hasSameBytes(as: $0) }) { return name }
      guard !name.hasSameBytes(as: "_selector") else {
        throw CouchDBError(501, "not_implemented", "`selector` does what the filter `_selector` would")
      }
      let parts = name.split(separator: "/", omittingEmptySubsequences: false)
      guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
        throw refuse("filter", "of the form `designname/filtername`")
      }
      return name
    }
  }
}
