import Bytes
import HTTP
import Touchstone
import Views

extension DatabaseService {
  /// Finds out what is asked for, and answers it. Throws errors that become answers.
  func route(_ request: HTTPRequest) throws -> HTTPAnswer {
    if request.target.isAsterisk {
      // A question for what the server as a whole can do (RFC 9110, 9.3.7).
      guard request.method == "OPTIONS" else {
        throw CouchDBError(400, "bad_request", "the target isn't a path")
      }
      return .methods
    }
    // CouchDB reads "+" as a blank.
    guard var path = request.target.segmentsWithBlanks else {
      throw CouchDBError(400, "bad_request", "the path isn't percent-encoded properly")
    }
    // As in CouchDB: a client may put "/doc" behind a URL that ends with a slash.
    path.removeAll { $0 == ByteString("") }
    let query = try APIQuery(request.target)
    guard let first = path.first else { return try serverAnswer(request, [], query) }
    let name = first.string
    let isReplicator = name.hasSameBytes(as: ReplicatorDocument.database)
    if isReplicator, path.count > 1 || request.method == "POST", request.context.isServerAdmin {
      _ = try replicatorDatabase(for: request.method)
    }
    // A database's name begins with a letter; `_users` and `_replicator` may exist.
    let isOfSystemDatabase =
      ["PUT", "DELETE"].contains(request.method) && path.count == 1
      && Self.systemNames.contains { $0.hasSameBytes(as: name) }
    if path == [ByteString("favicon.ico")] { return try serverAnswer(request, path, query) }
    // The server's own paths need no database: a health check must not wait for one, nor for the server that has it.
    if name.utf8.first == UInt8(ascii: "_"), !isOfSystemDatabase,
      try Routes.server.hasPaths(below: first) || catalog.database(name) == nil
    {
      return try serverAnswer(request, path, query)
    }
    let rest = Array(path.dropFirst())
    if rest.isEmpty, let answer = try makeOrDelete(request, name, query) {
      if isReplicator { startReplications() }
      return answer
    }
    guard let database = try catalog.database(name) else {
      // Who hasn't logged in doesn't get to know which databases there are.
      if request.context.isAnonymous { try Authorization.check(.member, of: request.context, .standard) }
      throw CouchDBError.noDatabase
    }
    let call = DatabaseCall(
      service: self, request: request, name: name, database: database, path: rest, query: query)
    var answer = try whileThere(name, database) { try call.answer() }
    if let written = answer.body.written {
      answer.body = .written(length: written.length) { [self] output in
        try whileThere(name, database) { try written.write(output) }
      }
    }
    return answer
  }

  /// Runs a part of a request to a database. Whatever goes wrong while that is deleted: it isn't there any more.
  private func whileThere<Result>(_ name: String, _ database: Database, _ body: () throws -> Result) throws
    -> Result
  {
    do { return try body() } catch  where !(error is CouchDBError) && !(error is HTTPBodyError) {
      guard try catalog.database(name) === database else { throw CouchDBError.noDatabase }
      throw error
    }
  }
}

extension DatabaseCall {
  /// The answer to a request to a database, or to something in it.
  func answer() throws -> HTTPAnswer {
    if hasSecrets { try checkSecrets() }
    let answer = try routedAnswer()
    return hasSecrets ? try withoutSecrets(answer) : answer
  }

  private func routedAnswer() throws -> HTTPAnswer {
    guard let first = path.first else { return try Routes.wholeDatabase.answer(self, method, []) }
    // No other document has such an ID.
    if first.bytes.first == UInt8(ascii: "_"),
      let answer = try Routes.database.answer(self, method, pathOfDesign ?? path)
    {
      return answer
    }
    return try documentAnswer()
  }

  /// The path with `_design` and a name as two segments, if the client has escaped the slash between them: `_design%2Fx/_info`.
  private var pathOfDesign: [ByteString]? {
    let prefix = Array(IncomingID.designPrefix.utf8)
    guard path.count > 1, let first = path.first, first.bytes.starts(with: prefix) else { return nil }
    return [ByteString("_design"), ByteString(Array(first.bytes.dropFirst(prefix.count)))] + path.dropFirst()
  }
}
