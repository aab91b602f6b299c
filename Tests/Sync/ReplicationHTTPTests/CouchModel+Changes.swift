import Bytes
import Fleece
import Foundation
import HTTP
import Storage

// The feed of changes, and what a database lacks.
extension CouchModel {
  var instanceStartTime: String {
    state.withLock { $0.tellsInstance ? "17\($0.instance)" : "0" }
  }

  private static func mark(_ state: State) -> String {
    "-g1AAAA\(String(repeating: "B", count: 40))\(state.instance)"
  }

  func sequence(_ number: Int, _ state: State) -> JSONValue {
    state.givesNumbers ? .int(Int64(number)) : .string("\(number)\(Self.mark(state))")
  }

  func changes(_ request: MiniRequest) throws -> MiniAnswer {
    let since = request.query["since"] ?? "0"
    let (mark, instance, givesNumbers) = state.withLock { (Self.mark($0), $0.instance, $0.givesNumbers) }
    guard since == "0" || since.contains("-g1") != givesNumbers, let number = Int(since.prefix { $0 != "-" })
    else {
      throw Refused(400, "bad_request", "Malformed sequence supplied in 'since' parameter: \(since)")
    }
    // Of another database's sequence it knows nothing.
    let start = givesNumbers || since.hasSuffix(mark) ? number : 0
    let style = request.query["style"] ?? "main_only"
    guard ["all_docs", "main_only"].contains(style) else { throw Refused(400, "odd", "style") }
    let limit = request.query["limit"].flatMap { Int($0) } ?? Int.max
    var body: JSONValue = [:]
    if request.method == "POST" { body = try Self.value(request) }
    if request.query["feed"] == "longpoll" {
      // As long as nothing has changed.
      for _ in 0..<2_000
      where state.withLock({ $0.sequence <= start && $0.instance == instance && !$0.isClosed }) {
        usleep(5_000)
      }
    }
    return state.withLock { state in
      let all = state.documents.filter { id, document in
        guard document.sequence > start else { return false }
        switch request.query["filter"] {
        case "_doc_ids": return body["doc_ids"].array?.contains(.string(id)) ?? false
        case "_selector":
          guard let winner = document.leaves.first.flatMap({ document.revisions[$0] }) else { return false }
          return (body["selector"].object ?? [:]).allSatisfy { winner.body[$0.key] == $0.value }
        case "app/type":
          guard let winner = document.leaves.first.flatMap({ document.revisions[$0] }) else { return false }
          return winner.body["type"]?.string == request.query["type"]
        default: return true
        }
      }.sorted { $0.value.sequence < $1.value.sequence }
      let rows = all.prefix(limit).map { id, document -> String in
        let leaves = document.leaves
        let isDeleted = document.revisions[leaves[0]]?.isDeleted ?? false
        let shown = style == "main_only" ? leaves.prefix(1) : leaves[...]
        let revisions = shown.map { "{\"rev\":\"\($0)\"}" }.joined(separator: ",")
        let name = (try? JSONValue.string(id).canonicalJSON()) ?? "\"\""
        let sequence = (try? sequence(document.sequence, state).canonicalJSON()) ?? ""
        return "{\"seq\":\(sequence),\"id\":\(name),\"changes\":[\(revisions)]"
          + (isDeleted ? ",\"deleted\":true}" : "}")
      }
      let last = sequence(all.count > limit ? all[limit - 1].value.sequence : state.sequence, state)
      return MiniAnswer(
        200,
        "{\"results\":[\n\(rows.joined(separator: ",\n"))\n],\n\"last_seq\":\((try? last.canonicalJSON()) ?? ""),\"pending\":\(all.count - rows.count)}\n"
      )
    }
  }

  func difference(_ request: MiniRequest) throws -> MiniAnswer {
    var result: JSONObject = [:]
    for (id, list) in try Self.value(request).object ?? [:] {
      let revisions = (list.array ?? []).compactMap(\.string)
      state.withLock { state in
        let document = state.documents[id]
        let missing = revisions.filter { document?.parents[$0] == nil }
        guard let highest = missing.map(Self.generation).max() else { return }
        var entry: JSONObject = ["missing": .array(missing.map { .string($0) })]
        let ancestors = (document?.leaves ?? []).filter { Self.generation($0) < highest }
        if !ancestors.isEmpty { entry["possible_ancestors"] = .array(ancestors.map { .string($0) }) }
        result[id] = .object(entry)
      }
    }
    return Self.json(.object(result))
  }
}
