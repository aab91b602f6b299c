import Documents
import Fleece
import Storage

/// The schema that INFER finds in a sample of the documents: their properties, with types and some values.
struct InferredSchema {
  /// What a property has in the documents that have it.
  private final class Property {
    var documents = 0
    var types: [String: Form] = [:]
  }

  /// What a property of one type has.
  private final class Form {
    var documents = 0
    var samples: [JSONValue] = []
    var members: [ByteString: Property] = [:]
    var items: Property?
  }

  private let sampleSize: Int
  private let sampleValues: Int
  private let root = Form()
  private var count = 0

  /// The number of documents that are read, and of values that are shown, where nothing else is said.
  static let standardSample = 1_000
  static let standardValues = 5
  /// Documents whose names are data, such as IDs, have as many properties as they like.
  private static let mostProperties = 2_000
  private static let mostDepth = 20
  /// Longer texts aren't shown.
  private static let longestText = 200

  init(_ statement: InferStatement?) {
    sampleSize = statement?.sampleSize ?? Self.standardSample
    sampleValues = statement?.sampleValues ?? Self.standardValues
  }

  /// Reads the sample.
  mutating func read(_ snapshot: DocumentSnapshot, _ cancellation: QueryCancellation) throws {
    try snapshot.forEachSampledBody(upTo: sampleSize) { body in
      try cancellation.check()
      add(body)
      return true
    }
  }

  private var properties = 0

  private mutating func add(_ body: JSONValue) {
    guard case .object = body else { return }
    count += 1
    root.documents += 1
    add(membersOf: body, to: root, depth: 1)
  }

  private mutating func add(membersOf value: JSONValue, to form: Form, depth: Int) {
    guard case .object(let members) = value, depth < Self.mostDepth else { return }
    for (name, member) in members {
      let key = ByteString(name)
      if form.members[key] == nil {
        guard properties < Self.mostProperties else { continue }
        properties += 1
        form.members[key] = Property()
      }
      if let property = form.members[key] { add(member, to: property, depth: depth) }
    }
  }

  private mutating func add(_ value: JSONValue, to property: Property, depth: Int) {
    property.documents += 1
    let form = property.types[Self.type(of: value)] ?? Form()
    property.types[Self.type(of: value)] = form
    form.documents += 1
    switch value {
    case .object: add(membersOf: value, to: form, depth: depth + 1)
    case .array(let items):
      guard depth < Self.mostDepth else { return }
      let property = form.items ?? Property()
      form.items = property
      for item in items { add(item, to: property, depth: depth + 1) }
    case .string(let text) where text.utf8.count > Self.longestText: break
    case .null, .data: break
    default:
      if form.samples.count < sampleValues, !form.samples.contains(value) { form.samples.append(value) }
    }
  }

  private static func type(of value: JSONValue) -> String {
    switch value {
    case .null: "null"
    case .bool: "boolean"
    case .int, .uint, .double: "number"
    case .string: "string"
    case .data: "binary"
    case .array: "array"
    case .object: "object"
    }
  }

  // MARK: Output

  /// The schema, in the form of a JSON schema with counts.
  var json: JSONValue {
    var object: JSONObject = [
      "#docs": JSONValue(count), "$schema": "http://json-schema.org/draft-06/schema", "type": "object",
      "properties": members(of: root, outOf: count),
    ]
    if properties >= Self.mostProperties { object["complete"] = false }
    return .object(object)
  }

  private func members(of form: Form, outOf whole: Int) -> JSONValue {
    var object = JSONObject()
    for (name, property) in form.members.sorted(by: { $0.key < $1.key }) {
      var described = described(property)
      let percent = (Double(property.documents) * 10_000 / Double(max(1, whole))).rounded() / 100
      described["%docs"] = .double(percent)
      object[name.string] = .object(described)
    }
    return .object(object)
  }

  /// One value for one type, and an array for several, the most frequent one first.
  private func described(_ property: Property) -> JSONObject {
    let forms = property.types.sorted { ($1.value.documents, $0.key) < ($0.value.documents, $1.key) }
    func each(_ value: (String, Form) -> JSONValue) -> JSONValue {
      forms.count == 1 ? value(forms[0].key, forms[0].value) : .array(forms.map { value($0.key, $0.value) })
    }
    var object: JSONObject = [
      "#docs": each { JSONValue($1.documents) }, "type": each { name, _ in .string(name) },
      "samples": each { .array($1.samples) },
    ]
    for (_, form) in forms {
      if !form.members.isEmpty { object["properties"] = members(of: form, outOf: form.documents) }
      if let items = form.items, items.documents > 0 { object["items"] = .object(described(items)) }
    }
    return object
  }
}
