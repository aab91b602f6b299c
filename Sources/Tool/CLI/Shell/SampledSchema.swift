import Bytes
import Fleece
import Query
import Touchstone

/// The properties of a database's documents, as a sample of them shows.
struct SampledSchema {
  /// A property, and what documents have there.
  struct Property {
    /// The names to it, joined by dots; `[]` after an array stands for its items: `reviews[].ratings.Overall`.
    let path: String
    /// The number of sampled documents that have it.
    var documents = 0
    /// How often each type was found.
    var types: [String: Int] = [:]
    /// The last document that was counted.
    fileprivate var last = -1

    /// The types, the most frequent one first.
    var sortedTypes: [(name: String, count: Int)] {
      types.map { (name: $0.key, count: $0.value) }.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
    }
  }

  /// The number of documents in the database.
  private(set) var documentCount = 0
  /// The number of documents that were read.
  private(set) var sampled = 0
  /// Whether there are more properties than are kept.
  private(set) var isIncomplete = false
  private var found: [ByteString: Property] = [:]

  /// The number of documents that are read where nothing else was said.
  static let standardSample = 1_000
  /// Documents whose names are data, such as IDs, have as many properties as they like.
  private static let maximumProperties = 2_000
  private static let maximumDepth = 20

  /// The properties in the order of their paths.
  var properties: [Property] { found.values.sorted { $0.path.precedesInBytes($1.path) } }

  /// Reads at most `limit` documents. Of more, they are spread evenly over the order of the last changes. `isStopped` is
  /// asked between documents.
  init(of database: Database, limit: Int = standardSample, isStopped: () -> Bool = { false }) throws {
    try database.read { snapshot in
      documentCount = try snapshot.documentCount
      try snapshot.forEachSampledBody(upTo: limit) { body in
        add(body)
        return !isStopped()
      }
    }
  }

  private mutating func add(_ body: JSONValue) {
    guard case .object(let members) = body else { return }
    for (name, value) in members { add(value, Self.quoted(name), depth: 1) }
    sampled += 1
  }

  private mutating func add(_ value: JSONValue, _ path: String, depth: Int) {
    let key = ByteString(path)
    if found[key] == nil {
      guard found.count < Self.maximumProperties else {
        isIncomplete = true
        return
      }
      found[key] = Property(path: path)
    }
    let isBlob = if case .object(let members) = value { members["@type"] == "blob" } else { false }
    let type = isBlob ? "blob" : Self.type(of: value)
    found[key]?.types[type, default: 0] += 1
    if found[key]?.last != sampled {
      found[key]?.last = sampled
      found[key]?.documents += 1
    }
    guard depth < Self.maximumDepth, !isBlob else { return }
    switch value {
    case .object(let members):
      for (name, member) in members { add(member, path + "." + Self.quoted(name), depth: depth + 1) }
    case .array(let items): for item in items { add(item, path + "[]", depth: depth + 1) }
    default: break
    }
  }

  /// The name as a query has it.
  private static func quoted(_ name: String) -> String {
    QueryVocabulary.mustBeQuoted(name)
      ? "`" + name.split(separator: "`", omittingEmptySubsequences: false).joined(separator: "``") + "`"
      : name
  }

  private static func type(of value: JSONValue) -> String {
    switch value {
    case .null: "null"
    case .bool: "boolean"
    case .int, .uint, .double: "number"
    case .string: "string"
    case .data: "data"
    case .array: "array"
    case .object: "object"
    }
  }
}

extension SampledSchema {
  /// Prints a table of the properties, or one JSON object. `prefix` limits it to a property and what is below it. Throws a
  /// `Refusal` if no document that was read has that.
  func print(below prefix: String? = nil, asJSON: Bool = false, to output: StandardOutput) throws {
    let shown = properties.filter { property in
      guard let prefix else { return true }
      return property.path == prefix || property.path.hasPrefix(prefix + ".")
        || property.path.hasPrefix(prefix + "[]")
    }
    if asJSON {
      let rows = shown.map { property in
        var types = JSONObjectText()
        for (name, count) in property.sortedTypes { types.add(name, count) }
        return ["path": property.path, "documents": property.documents, "types": types] as JSONObjectText
      }
      let object: JSONObjectText = [
        "documents": documentCount, "sampled": sampled, "complete": !isIncomplete, "properties": rows,
      ]
      try output.line(object.jsonText)
      return try checkIsFound(prefix, shown)
    }
    try checkIsFound(prefix, shown)
    var table = TextTable([("property", .left), ("documents", .right), ("types", .left)])
    for property in shown {
      let total = property.types.values.reduce(0, +)
      let types = property.sortedTypes.map { type in
        type.count == total ? type.name : "\(type.name) \(Self.percent(type.count, of: total))"
      }
      table.add(
        property.path, Self.percent(property.documents, of: sampled), types.joined(separator: ", "))
    }
    try output.lines(table.lines)
    try output.flush()
    let counts = "\(TextTable.grouped(sampled)) of \(TextTable.grouped(documentCount))"
    StandardError.line(
      "read \(counts) documents" + (isIncomplete ? "; there are more properties than are shown" : ""))
  }

  private func checkIsFound(_ prefix: String?, _ shown: [Property]) throws {
    guard let prefix, shown.isEmpty else { return }
    let hint = Suggestions.hint(for: prefix, among: properties.map(\.path))
    let counts =
      sampled == documentCount
      ? "no document has the property '\(prefix)'"
      : "none of \(TextTable.grouped(sampled)) documents of \(TextTable.grouped(documentCount)) has the property '\(prefix)'"
    throw Refusal(counts + hint)
  }

  /// A part in percent: at least "<1 %" and at most ">99 %" unless it is nothing or all.
  static func percent(_ part: Int, of whole: Int) -> String {
    guard part > 0, part < whole else { return part == 0 ? "0 %" : "100 %" }
    let percent = Int((Double(part) * 100 / Double(whole)).rounded())
    return percent < 1 ? "<1 %" : percent > 99 ? ">99 %" : "\(percent) %"
  }
}
