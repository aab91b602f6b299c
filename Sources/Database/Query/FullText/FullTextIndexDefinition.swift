import Bytes
import Documents
import FullText
import Storage

// The stored definition of a full-text index.
//
//   definition := version:u8=1 field*
//   field      := tag:u8  length:varint  bytes
//
//   tag 1  an indexed expression, in their order; at least one      text of the query language
//   tag 2  WHERE: documents that don't meet it aren't in the index  text of the query language
//   tag 3  the language                                            its name
//   tag 4  flags:u8                                                1 ignores accents, 2 doesn't stem, 4 no stop words,
//                                                                  8 stop words of one's own
//   tag 5  a stop word of one's own
//   tag 6  the weight of a column, in their order                   its bits, 8 bytes little-endian

/// The definition of a full-text index: the words in some expressions, for all documents or for those that
/// meet a condition.
///
/// Words are taken from the text of a value. A string is its own text. A number has its decimal text, and a
/// boolean `T` or `F`. An array or object has the texts of all values in it, separated by spaces, without the
/// names. Null and binary data have no text.
public struct FullTextIndexDefinition: Hashable, Sendable {
  /// The indexed expressions. Each is a column. 1 to 32.
  public var expressions: [QueryExpression]
  /// The condition that indexed documents have to meet. Nil indexes all documents.
  public var condition: QueryExpression?
  /// The options for splitting text into words.
  public var options: TextAnalysisOptions
  /// The weight of each column for RANK. Nil means a weight of 1 for each.
  public var weights: [Double]?

  static let version: UInt8 = 1

  /// Creates a definition from expressions.
  public init(
    _ expressions: [QueryExpression], where condition: QueryExpression? = nil,
    options: TextAnalysisOptions = TextAnalysisOptions(), weights: [Double]? = nil
  ) {
    self.expressions = expressions
    self.condition = condition
    self.options = options
    self.weights = weights
  }

  /// Creates a definition from the text of expressions: `["title", "contact.address"]`.
  ///
  /// - Throws: `syntax` and related errors, with the position of the mistake in its text.
  public init(
    _ expressions: [String], where condition: String? = nil,
    options: TextAnalysisOptions = TextAnalysisOptions(), weights: [Double]? = nil
  ) throws(QueryError) {
    var parsed: [QueryExpression] = []
    for text in expressions { parsed.append(try QueryExpression(parsing: text)) }
    self.init(parsed, options: options, weights: weights)
    if let condition { self.condition = try QueryExpression(parsing: condition) }
  }

  /// The names of the columns in full-text queries, such as `title` in `title:linux`.
  public var columns: [String] {
    expressions.map { expression in
      guard case .property(let path) = expression else { return expression.description }
      return path.pathText
    }
  }

  /// A readable text, such as `title, text (english, ignoring accents)`.
  public var text: String {
    var text = expressions.map(\.description).joined(separator: ", ")
    if let condition { text += " WHERE \(condition)" }
    var notes: [String] = []
    if let language = options.language { notes.append(language.rawValue) }
    if !options.stems { notes.append("no stemming") }
    if options.ignoresAccents { notes.append("ignoring accents") }
    switch options.stopWords {
    case .standard: break
    case .none: notes.append("no stop words")
    case .custom(let words): notes.append("\(words.count) stop word\(words.count == 1 ? "" : "s")")
    }
    if let weights { notes.append("weights " + weights.map { "\($0)" }.joined(separator: ":")) }
    return notes.isEmpty ? text : text + " (" + notes.joined(separator: ", ") + ")"
  }

  // MARK: Stored form

  /// The stored form of the definition.
  package var encoded: [UInt8] {
    var bytes = [FullTextIndexDefinition.version]
    func add(_ tag: UInt8, _ field: [UInt8]) {
      bytes.append(tag)
      bytes.append(varint: UInt64(field.count))
      bytes += field
    }
    for expression in expressions { add(1, Array(expression.description.utf8)) }
    if let condition { add(2, Array(condition.description.utf8)) }
    if let language = options.language { add(3, Array(language.rawValue.utf8)) }
    var flags: UInt8 = (options.ignoresAccents ? 1 : 0) | (options.stems ? 0 : 2)
    var words: [String] = []
    switch options.stopWords {
    case .standard: break
    case .none: flags |= 4
    case .custom(let own):
      flags |= 8
      words = own
    }
    if flags != 0 { add(4, [flags]) }
    for word in words { add(5, Array(word.utf8)) }
    for weight in weights ?? [] {
      add(6, withUnsafeBytes(of: weight.bitPattern.littleEndian) { [UInt8]($0) })
    }
    return bytes
  }

  /// Reads the definition of a full-text index of a database. Throws `index` when it can't be read.
  package init(_ index: IndexRecord) throws { try self.init(encoded: index.definition) }

  init(encoded bytes: [UInt8]) throws {
    let damaged = QueryError(.index, "the definition of a full-text index can't be read")
    guard let version = bytes.first else { throw damaged }
    guard version == FullTextIndexDefinition.version else {
      throw QueryError(
        .index,
        "the definition of a full-text index has version \(version), which this release doesn't support")
    }
    self.init([QueryExpression]())
    var offset = 1
    var flags: UInt8 = 0
    var words: [String] = []
    var weights: [Double] = []
    while offset < bytes.count {
      let tag = bytes[offset]
      offset += 1
      guard let length = bytes.varint(at: &offset), length <= UInt64(bytes.count - offset) else {
        throw damaged
      }
      let field = bytes[offset..<(offset + Int(length))]
      offset += Int(length)
      func text() throws -> String {
        guard let text = String(validating: field, as: UTF8.self) else { throw damaged }
        return text
      }
      switch tag {
      case 1: expressions.append(try QueryExpression(parsing: text()))
      case 2: condition = try QueryExpression(parsing: text())
      case 3:
        guard let language = FullTextLanguage(rawValue: try text()) else { throw damaged }
        options.language = language
      case 4:
        guard field.count == 1, let byte = field.first, byte < 16, byte & 12 != 12 else { throw damaged }
        flags = byte
      case 5: words.append(try text())
      case 6:
        guard field.count == 8 else { throw damaged }
        weights.append(
          Double(bitPattern: field.reversed().reduce(0) { $0 << 8 | UInt64($1) }))
      default: throw damaged
      }
    }
    options.ignoresAccents = flags & 1 != 0
    options.stems = flags & 2 == 0
    if flags & 4 != 0 { options.stopWords = .none }
    if flags & 8 != 0 { options.stopWords = .custom(words) }
    if !weights.isEmpty { self.weights = weights }
    guard !expressions.isEmpty, weights.isEmpty || weights.count == expressions.count else { throw damaged }
  }

  // MARK: Validation

  /// Checks whether the definition can be indexed. Throws `unknownFunction` and related errors for invalid
  /// expressions. Throws `index` for expressions that depend on more than the document's ID and body, for two
  /// columns with the same name, for weights that don't fit, and for unusable options.
  package func check() throws {
    _ = try FullTextExtractor(self)
    var names: Set<ByteString> = []
    for name in columns where !names.insert(ByteString(name)).inserted {
      throw QueryError(.index, "\"\(name)\" is indexed twice")
    }
    if let weights {
      guard weights.count == expressions.count, weights.allSatisfy(\.isFinite) else {
        throw QueryError(
          .index, "there are \(weights.count) weights for \(expressions.count) columns")
      }
    }
    do { _ = try TextAnalyzer(options) } catch { throw QueryError(.index, "\(error)") }
  }
}
