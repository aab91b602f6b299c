import Bytes
import Documents
import Fleece
import Replication
import System
import Touchstone
import Views

extension ReplicatorConfiguration {
  /// What a replicator does for a request. `recordID` is that of the request. Throws a `CouchDBError` for what it can't do.
  init(
    _ request: ReplicationRequest, _ ends: ReplicationEnds, recordID: String, _ finder: ReplicationFinder
  ) throws {
    switch (ends.source, ends.target) {
    case (.here(let source), .here(let target)):
      var options = PassiveResponder.Options()
      options.checks = target.validation.check
      self.init(
        source.database,
        ReplicatorTarget(LocalConnector(target.database, options, exchangesLeaves: !request.onlyWinners)))
      direction = .push
      pushesConflicts = true
    case (.here(let source), .elsewhere(let remote)):
      self.init(source.database, try finder.target(of: remote))
      direction = .push
      connection = remote.connection
      connection.create(as: request)
    case (.elsewhere(let remote), .here(let target)):
      self.init(target.database, try finder.target(of: remote))
      direction = .pull
      connection = remote.connection
      let validation = target.validation
      pullFilter = { revision in
        try validation.check(
          revision.documentID, history: [revision.revisionID], isDeleted: revision.isDeleted,
          try revision.body())
        return true
      }
    case (.elsewhere, .elsewhere):
      throw CouchDBError(500, "error", "neither the source nor the target is a database of this server")
    }
    isContinuous = request.isContinuous
    replicatesOnlyWinners = request.onlyWinners
    documentIDs = request.documentIDs
    maximumRetries = request.retries ?? ReplicationRequest.usualRetries
    purgesOnLostAccess = false
    skipsTombstonesOfFirstPull = false
    resetsCheckpoint = !request.usesCheckpoints
    if let delay = request.checkpointDelay { checkpointDelay = delay }
    if let since = request.since { startSequence = RemoteSequence(json: try Self.sequence(since, ends)) }
    if request.needsOwnCheckpoint { remoteID = target.connector.remoteID + "#" + recordID }
    try choose(request, ends)
  }

  /// A sequence of the source as JSON; of a database of this server as a number.
  private static func sequence(_ value: JSONValue, _ ends: ReplicationEnds) throws -> String {
    guard let database = ends.source.database else { return try value.canonicalJSON() }
    guard let number = value.uint ?? value.string.flatMap({ database.couchDBSequences.number($0) }) else {
      throw CouchDBError(400, "bad_request", "`since_seq` isn't a sequence of \(ends.source.shown)")
    }
    return String(number)
  }

  /// Replicates only what a request chooses.
  private mutating func choose(_ request: ReplicationRequest, _ ends: ReplicationEnds) throws {
    guard let source = ends.source.database else { return try chooseThere(request, ends) }
    if let selector = try request.selector.map({ try MangoSelector($0) }) {
      pushFilter = try Self.filter(selector)
      return
    }
    guard let name = request.filter else { return }
    let filter: DesignFilter
    switch name {
    case "_design":
      pushFilter = { IncomingID.isDesign($0.documentID) }
      return
    case "_view":
      filter = try source.replicationFilter(
        "views", request.parameters["view"]?.string ?? "", shown: ends.source.shown
      ) { try source.designFilter(view: $0) }
    default:
      filter = try source.replicationFilter("filters", name, shown: ends.source.shown) {
        try source.designFilter($0)
      }
    }
    let argument: JSONObject = [
      "method": "GET", "query": .object(Self.texts(request.parameters)), "headers": [:],
    ]
    pushFilter = { revision in
      let body = try revision.body().object ?? [:]
      let revision = try ScriptedRevision(
        id: revision.documentID, history: [RevisionID(revision.revisionID)].compactMap { $0 },
        isDeleted: revision.isDeleted, body)
      return try filter.choose([revision], request: argument).first ?? false
    }
  }

  /// Chooses revisions by a selector.
  private static func filter(_ selector: MangoSelector) throws -> ReplicationFilter {
    let matcher = Lock(try MangoMatcher(selector))
    return { revision in
      try matcher.withLock { matcher in
        if matcher.needsBodyAlone {
          let id = Array(revision.documentID.utf8)
          let passes = try revision.withStoredBody { try matcher.matches(id: id.span.bytes, $0, $1) }
          if let passes { return passes }
        }
        var body = try revision.body().object ?? [:]
        body["_id"] = .string(revision.documentID)
        body["_rev"] = .string(revision.revisionID)
        if revision.isDeleted { body["_deleted"] = true }
        return matcher.matches(.object(body))
      }
    }
  }

  /// Lets the server of the source choose.
  private mutating func chooseThere(_ request: ReplicationRequest, _ ends: ReplicationEnds) throws {
    guard case .elsewhere(let remote) = ends.source else { return }
    guard request.filter == nil && request.selector == nil || !remote.isWebSocket else {
      throw CouchDBError(
        501, "not_implemented", "\(remote.shown) can't be asked for a part of its documents")
    }
    filter = request.filter
    filterParameters = Dictionary(
      Self.texts(request.parameters).map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    selector = request.selector
  }

  /// Parameters as a query string has them.
  fileprivate static func texts(_ parameters: JSONObject) -> JSONObject {
    var texts = JSONObject()
    for (name, value) in parameters { texts[name] = .string(value.string ?? value.description) }
    return texts
  }
}

extension RelayConfiguration {
  /// What a relay does for a request; nil if one of its sides is a database of this server. `recordID` is that of the request. Throws a
  /// `CouchDBError` for what it can't do.
  init?(
    _ request: ReplicationRequest, _ ends: ReplicationEnds, recordID: String, _ finder: ReplicationFinder
  ) throws {
    guard case .elsewhere(let source) = ends.source, case .elsewhere(let target) = ends.target else {
      return nil
    }
    self.init(from: try finder.target(of: source), to: try finder.target(of: target))
    sourceConnection = source.connection
    targetConnection = target.connection
    targetConnection.create(as: request)
    maximumRetries = request.retries ?? ReplicationRequest.usualRetries
    if let delay = request.checkpointDelay { checkpointDelay = delay }
    if request.usesCheckpoints { checkpointName = recordID }
    self.request.since = try request.since.map { RemoteSequence(json: try $0.canonicalJSON()) }
    self.request.isContinuous = request.isContinuous
    self.request.documentIDs = request.documentIDs
    self.request.filter = request.filter
    self.request.filterParameters = Dictionary(
      ReplicatorConfiguration.texts(request.parameters).map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    self.request.selector = request.selector
    self.request.onlyWinners = request.onlyWinners
  }
}

extension ConnectionOptions {
  /// Makes the database that it leads to, if there is none and a request wants it.
  fileprivate mutating func create(as request: ReplicationRequest) {
    createsDatabase = request.createsTarget
    creationParameters = ReplicatorConfiguration.texts(request.creationParameters)
      .map { (name: $0.key, value: $0.value.string ?? "") }
      .sorted { ByteString($0.name) < ByteString($1.name) }
  }
}

extension Database {
  /// The filter of a replication that the function `DESIGN/NAME` of a section makes. Throws 400 if that isn't a name, and 404 if it isn't
  /// there.
  fileprivate func replicationFilter(
    _ section: String, _ name: String, shown: String, _ make: (String) throws -> DesignFilter
  ) throws -> DesignFilter {
    let parts = name.split(separator: "/", maxSplits: 1).map { String($0) }
    guard parts.count == 2 else {
      throw CouchDBError(400, "bad_request", "`view` must be of the form `designname/viewname`")
    }
    let functions = try document("_design/" + parts[0])?.value()[section].object
    guard let functions, functions[parts[1]] != nil else {
      let what = section == "views" ? "view" : "filter"
      throw CouchDBError(
        404, "not_found", "there is no \(what) \(parts[1]) in the design document \(parts[0]) of \(shown)")
    }
    do { return try make(name) } catch let error as ViewError {
      throw CouchDBError(500, "error", error.message)
    }
  }
}
