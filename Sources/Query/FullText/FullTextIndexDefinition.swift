import Documents
import FullText
import Storage

// What a full-text index holds of each document.
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

/// What a full-text index holds: the words in some expressions, of all documents or of those that meet a condition.
///
/// Of a value, words are taken from its text: a string is itself, a number its decimal text, a boolean `T` or `F`, an
/// array or object the text of all that is in it (not the names), a space between; null and binary data have none.
public struct FullTextIndexDefinition: Hashable, Sendable {
  /// What is indexed: each expression is a column. 1 to 32.
  public var expressions: [Expression]
  /// What a document has to meet.
  public var condition: Expression?
  /// How text becomes words.
  public var options: TextAnalysisOptions
  /// How much an occurrence in each column counts for RANK; nil is 1 each.
  public var weights: [Double]?

  static let version: UInt8 = 1

  /// An index on these expressions.
  public init(
    _ expressions: [Expression], where condition: Expression? = nil,
    options: TextAnalysisOptions = TextAnalysisOptions(), weights: [Double]? = nil
  ) {
    self.expressions = expressions
    self.condition = condition
    self.options = options
    self.weights = weights
  }

  /// An index on expressions as text: `["title", "contact.address"]`.
  ///
  /// - Throws: `syntax` and its kin, with the place in the text that is wrong.
  public init(
    _ expressions: [String], where condition: String? = nil,
    options: TextAnalysisOptions = TextAnalysisOptions(), weights: [Double]? = nil
  ) throws(QueryError) {
    var parsed: [Expression] = []
    for text in expressions { parsed.append(try Expression(parsing: text)) }
    self.init(parsed, options: options, weights: weights)
    if let condition { self.condition = try Expression(parsing: condition) }
  }

  /// The names of the columns in queries: `title:linux`.
  public var columns: [String] {
    expressions.map { expression in
      guard case .property(let path) = expression else { return expression.description }
      return path.pathText
    }
  }

  /// For people: `title, text, english, ignoring accents`.
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

  // MARK: What is stored

  /// The bytes by which a database remembers the definition.
  public var encoded: [UInt8] {
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

  /// The definition of a full-text index that a database has. Throws `index` for what can't be read.
  public init(_ index: IndexRecord) throws { try self.init(encoded: index.definition) }

  init(encoded bytes: [UInt8]) throws {
    let damaged = QueryError(.index, "the definition of a full-text index can't be read")
    guard let version = bytes.first else { throw damaged }
    guard version == FullTextIndexDefinition.version else {
      throw QueryError(
        .index, "the definition of a full-text index is of version \(version), which isn't known here")
    }
    self.init([Expression]())
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
      case 1: expressions.append(try Expression(parsing: text()))
      case 2: condition = try Expression(parsing: text())
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

  // MARK: What can be indexed

  /// Throws what is wrong with it: unknown functions, `index` for what isn't the same at any time for the same body,
  /// for two columns of one name and for weights that don't fit.
  public func check() throws {
    _ = try FullTextExtractor(self)
    var names: Set<ByteString> = []
    for name in columns where !names.insert(ByteString(name)).inserted {
      throw QueryError(.index, "\"\(name)\" is indexed twice")
    }
    if let weights {
      guard weights.count == expressions.count, weights.allSatisfy(\.isFinite) else {
        throw QueryError(
          .index, "there are \(expressions.count) columns, and \(weights.count) weights for them")
      }
    }
    do { _ = try TextAnalyzer(options) } catch { throw QueryError(.index, "\(error)") }
  }
}
