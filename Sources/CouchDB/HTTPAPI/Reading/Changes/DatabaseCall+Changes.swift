import Documents
import Fleece
import HTTP
import Storage
import Touchstone
import Views

extension DatabaseCall {
  /// The answer to `_changes`.
  func changes() throws -> HTTPAnswer {
    let options = try ChangesOptions(
      textQuery, lastEventID: request.headers.first("last-event-id"), database.couchDBSequences)
    let body = try method == "POST" ? changesBody() : nil
    let filter = try changesFilter(options, body: body)
    return try options.feed == .normal ? normalChanges(options, filter) : liveChanges(options, filter)
  }

  /// The value of the body; nil for an empty one. Options in it aren't read, as in CouchDB.
  private func changesBody() throws -> JSONValue? {
    let bytes = try jsonBytes()
    guard !bytes.isEmpty else { return nil }
    let body = try JSONValue(body: bytes)
    guard body.object != nil else {
      throw CouchDBError(400, "bad_request", "Request body must be a JSON object")
    }
    return body
  }

  private func normalChanges(_ options: ChangesOptions, _ filter: ChangesFilter) throws -> HTTPAnswer {
    let tag = try entityTag()
    let header = HTTPHeader("ETag", tag)
    if request.matches(tag) { return HTTPAnswer(status: 304, headers: [header]) }
    if method == "HEAD" { return .headOfJSON(headers: [header]) }
    return .json(headers: [header]) { output in
      let reader = ChangesReader(self, options, filter, sliceBytes: 256 << 10)
      output.append("{\"results\":[\n")
      reader.begin()
      repeat {
        try checkWanted()
        try reader.read()
        reader.text.withBytes { bytes in output.write { $0.append(json: bytes) } }
        try output.step()
      } while !reader.isDone
      output.append(
        raw: "\n],\n\"last_seq\":\"\(reader.lastSequence)\",\"pending\":\(try reader.pending())}\n\n")
    }
  }

  private func liveChanges(_ options: ChangesOptions, _ filter: ChangesFilter) throws -> HTTPAnswer {
    var headers: [HTTPHeader] = [.json]
    if options.feed == .eventsource {
      headers = [.init("Content-Type", "text/event-stream"), .init("Cache-Control", "no-cache")]
    }
    guard method != "HEAD" else {
      return HTTPAnswer(status: 200, headers: headers, body: .stream { $0.fail() })
    }
    // What is wrong with the first slice is the answer.
    let reader = ChangesReader(self, options, filter, sliceBytes: 64 << 10)
    reader.begin()
    try reader.read()
    let feed = ChangesFeed(
      reader, database, service.watches, service.rights, request.context, needed(.member))
    let origin = request.origin
    return HTTPAnswer(status: 200, headers: headers, body: .stream { feed.start($0, origin) })
  }

  /// A tag of the state of the database. It lasts as long as this process.
  private func entityTag() throws -> String {
    try database.read { snapshot in
      var hasher = Hasher()
      hasher.combine(database.publicUUID)
      hasher.combine(try snapshot.lastSequence)
      hasher.combine(try snapshot.newestPurge)
      hasher.combine(try snapshot.count(of: .changes))
      hasher.combine(snapshot.unsequencedCommits)
      return "\"" + String(UInt64(bitPattern: Int64(hasher.finalize())), radix: 36, uppercase: true) + "\""
    }
  }
}
