import Bytes
import Fleece
import HTTP
import Logs
import Storage
import Touchstone
import Views

// `_find` and its relatives: documents by selectors (docs/http-find.md).

extension DatabaseCall {
  /// The answer to `_find`.
  func find() throws -> HTTPAnswer {
    let plan = try mangoPlan(explains: false)
    let begin = LogClock.now
    return .json { output in
      let reader = try mangoReader(plan)
      output.append("{\"docs\":[")
      repeat {
        try checkWanted()
        try reader.read()
        reader.text.withBytes { bytes in output.write { $0.append(json: bytes) } }
        try output.step()
      } while !reader.isDone
      output.append("\r\n],\r\n\"bookmark\": ")
      output.append(jsonString: reader.bookmark)
      if plan.query.includesStatistics { append(statistics: reader, since: begin, to: output) }
      let warnings = plan.warnings(documents: reader.documentsExamined, results: reader.results)
      if !warnings.isEmpty {
        output.append(",\r\n\"warning\": ")
        output.append(jsonString: warnings.joined(separator: "\n"))
      }
      output.append("}\r\n")
    }
  }

  private func append(statistics reader: MangoReader, since begin: UInt64, to output: AnswerOutput) {
    output.append(",\r\n\"execution_stats\": {\"total_keys_examined\":")
    output.append(reader.keysExamined)
    output.append(",\"total_docs_examined\":")
    // A client that asks for more copies of each document than one is told of them by another name.
    let hasQuorum = reader.plan.query.readQuorum > 1
    output.append(hasQuorum ? 0 : reader.documentsExamined)
    output.append(",\"total_quorum_docs_examined\":")
    output.append(hasQuorum ? reader.documentsExamined : 0)
    output.append(",\"results_returned\":")
    output.append(reader.results)
    output.append(",\"execution_time_ms\":")
    output.write { $0.append(Double((LogClock.now - begin) / 1_000) / 1_000) }
    output.append("}")
  }

  /// The answer to `_explain`.
  func explain() throws -> HTTPAnswer {
    let plan = try mangoPlan(explains: true)
    return .json(text: plan.explanation(database: name).jsonText + [UInt8(ascii: "\n")])
  }

  private func mangoPlan(explains: Bool) throws -> MangoPlan {
    var query = try MangoQuery(mangoBody())
    for asked in [partition, self.query["partition"]] {
      guard let asked else { continue }
      // The body may name the partition too.
      guard query.partition.isEmpty || query.partition.hasSameBytes(as: asked) else {
        throw CouchDBError(
          400, "bad_request", "`partition` in the body is \(query.partition), and \(asked) in the URL")
      }
      query.partition = asked
    }
    if !query.partition.isEmpty { try Self.checkPartition(query.partition, "illegal_partition") }
    return try database.mangoPlan(query, inPartitionedDatabase: isPartitioned(), explains: explains)
  }

  /// The body, which has to be an object.
  func mangoBody() throws -> OrderedJSON {
    let bytes = try jsonBytes()
    // The value, the same with its order, and what is made of it.
    try request.memory?.hold(3 * bytes.withUnsafeBytes { JSONValue.memory(of: $0) })
    let body = try OrderedJSON(parsing: bytes)
    guard body.members != nil else {
      throw CouchDBError(400, "bad_request", "Request body must be a JSON object")
    }
    return body
  }

  private func mangoReader(_ plan: MangoPlan) throws -> MangoReader {
    let reader = try database.mangoReader(plan)
    let (database, service, origin) = (database, service, request.origin)
    reader.isCancelled = { origin.isCancelled }
    reader.isWanted = {
      // Not whether its client still waits: the next one needs the same rows.
      database.isOpenForReplication && !database.isClosing && !service.isStopping.withLock { $0 }
    }
    reader.around = { slice in
      if origin.isCancelled { throw HTTPBodyError.clientGone }
      try database.replicating { _ in try slice() }
    }
    return reader
  }
}
