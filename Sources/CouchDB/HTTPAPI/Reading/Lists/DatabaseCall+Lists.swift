import Bytes
import Fleece
import HTTP
import Views

extension DatabaseCall {
  /// What `_all_docs`, `_design_docs` and `_local_docs` list.
  enum ListKind: Sendable {
    case documents(DocumentList.Kind)
    case local
  }

  /// The answer of a list.
  func list(_ kind: ListKind) throws -> HTTPAnswer {
    let options = try ListOptions(query: textQuery, body: method == "POST" ? jsonBytes() : nil)
    if method == "HEAD" { return .headOfJSON() }
    return .json { output in
      try write(kind, options, to: output)
      output.append("\n")
    }
  }

  /// The answer of several queries of a list.
  func listQueries(_ kind: ListKind) throws -> HTTPAnswer {
    let queries = try CouchDBViewOptions.queries(body: jsonBytes(), query: textQuery).map {
      try ListOptions($0)
    }
    return .json { output in
      output.append("{\"results\":[\r\n")
      for (index, options) in queries.enumerated() {
        if index > 0 { output.append(",\r\n") }
        try write(kind, options, to: output)
      }
      output.append("\r\n]}\n")
    }
  }

  private func write(_ kind: ListKind, _ options: ListOptions, to output: AnswerOutput) throws {
    switch kind {
    case .documents(.all): try DocumentList(inPartitionOfList(), .all, options).write(to: output)
    case .documents(let kind): try DocumentList(self, kind, options).write(to: output)
    case .local: try LocalDocumentList(self, options).write(to: output)
    }
  }

  /// The items of the query string as text.
  var textQuery: [(name: String, value: String)] { query.items.map { ($0.name.string, $0.value.string) } }

  /// The bytes of the body, which has to be said to be JSON.
  func jsonBytes() throws -> [UInt8] {
    try checkContentType()
    return try bodyBytes()
  }
}

extension HTTPAnswer {
  /// The answer to HEAD where GET has JSON of unknown length.
  static func headOfJSON(headers: [HTTPHeader] = []) -> HTTPAnswer {
    HTTPAnswer(status: 200, headers: [.json] + headers, body: .stream { $0.fail() })
  }
}
