// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Fleece
import Touchstone

@c @implementation
public func touchstone_create_index(
  _ database: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ name_length: Int,
  _ options: UnsafePointer<CChar>?,
  _ options_length: Int, _ error: ErrorPlace?
) -> Int32 {
  Int32(
    truncatingIfNeeded: number(error) {
      let handle = try Handles.content(database, DatabaseHandle.self)
      let name = try string(name, name_length, "the name of the index")
      var options = try Options(options, options_length)
      let expressions = try options.strings("on") ?? []
      let condition = try options.string("where")
      guard try options.bool("fullText") ?? false else {
        let unnest = try options.string("unnest")
        try options.end()
        return try handle.perform { database in
          if let unnest {
            return try database.createIndex(name, unnest: unnest, on: expressions, where: condition) ? 1 : 0
          }
          return try database.createIndex(name, on: expressions, where: condition) ? 1 : 0
        }
      }
      let analysis = try TextAnalysisOptions(reading: &options)
      let weights = try options.doubles("weights")
      try options.end()
      return try handle.perform { database in
        try database.createFullTextIndex(
          name, on: expressions, where: condition, options: analysis, weights: weights) ? 1 : 0
      }
    })
}

extension TextAnalysisOptions {
  /// The options of a full-text index.
  fileprivate init(reading options: inout Options) throws {
    self.init()
    if let text = try options.string("language") {
      guard let language = FullTextLanguage(text) else {
        let known = FullTextLanguage.allCases.map(\.rawValue).joined(separator: ", ")
        throw Misuse("there is no language \"\(text)\"; there are \(known)", .badRequest)
      }
      self.language = language
    }
    ignoresAccents = try options.bool("ignoreAccents") ?? false
    switch options.value("stopWords") {
    case nil, .bool(true)?: break
    case .bool(false)?: stopWords = .none
    case .array(let words)?: stopWords = .custom(words.compactMap(\.string))
    default: throw Misuse("the option stopWords is neither true, false nor an array of words", .badRequest)
    }
  }
}

@c @implementation
public func touchstone_delete_index(
  _ database: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ name_length: Int, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let name = try string(name, name_length, "the name of the index")
    guard try handle.perform({ try $0.deleteIndex(name) }) else {
      throw Misuse("there is no index \"\(name)\"", .notFound)
    }
  }
}

@c @implementation
public func touchstone_indexes(
  _ database: OpaquePointer?, _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let indexes = try Handles.content(database, DatabaseHandle.self).perform { try $0.indexes }
    let items: [JSONValue] = indexes.map { index in
      .object([
        "name": .string(index.name), "kind": .string(index.kind), "definition": .string(index.text),
      ])
    }
    try hand(.array(items), to: json, length)
  }
}
