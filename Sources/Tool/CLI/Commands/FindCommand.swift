import Fleece
import Touchstone
import Views

/// `touchstone find`: prints the documents that a selector of CouchDB's `_find` chooses.
struct FindCommand: Subcommand {
  private static let selector = Positional(
    "SELECTOR", "The selector, or the body of a request to _find with a member selector; - for standard input"
  )
  private static let fields = Option("fields", "A,B", "Only these fields of the documents")
  private static let sort = Option(
    "sort", "A,B", "Sorts by these fields, which an index has to have in this order")
  private static let descending = Flag("descending", "With --sort: the highest comes first")
  private static let limit = Option<Int>("limit", "N", in: 0...Int.max, "The maximum number of documents")
  private static let skip = Option<Int>("skip", "N", in: 0...Int.max, "Leaves out the first N documents")
  private static let explain = Flag(
    "explain", "Prints which index the documents would be found by, and doesn't look for them")

  static let usage = Usage(
    "find", "Finds documents by a selector of CouchDB",
    positionals: [DatabaseArguments.database, selector],
    options: [fields, sort, descending, limit, skip, explain] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone find travel '{\"type\": \"hotel\", \"reviews\": {\"$size\": 3}}' --fields _id,name --limit 10",
      "touchstone find travel '{\"selector\": {\"type\": \"hotel\"}, \"limit\": 3}' --explain",
    ],
    notes:
      """
      Each document is a line of JSON, with _id and _rev. Without a limit, all documents are printed. Indexes are made
      over HTTP, or with `touchstone put` as design documents (docs/http-find.md).
      """)

  private let database: DatabaseArguments
  private let text: String
  private let fields: String?
  private let sort: String?
  private let isDescending: Bool
  private let limit: Int?
  private let skip: Int?
  private let explains: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    text = try arguments.required(Self.selector)
    fields = try arguments.value(Self.fields)
    sort = try arguments.value(Self.sort)
    isDescending = arguments[Self.descending]
    limit = try arguments.value(Self.limit)
    skip = try arguments.value(Self.skip)
    explains = arguments[Self.explain]
    if isDescending, sort == nil { throw UsageError("--descending needs --sort") }
  }

  func run(_ output: StandardOutput) throws {
    let query = try request()
    Interrupt.listen()
    let database = try database.open()
    do {
      let plan = try database.mangoPlan(query, explains: explains)
      if explains {
        try output.line(
          String(decoding: plan.explanation(database: database.name).jsonText, as: UTF8.self))
      } else {
        try print(try database.mangoReader(plan), output)
      }
    } catch let error as CouchDBError { throw UsageError("\(error.reason) (\(error.error))") }
    try database.close()
  }

  private func print(_ reader: MangoReader, _ output: StandardOutput) throws {
    func stop() -> Interrupted { Interrupted("\(reader.results) documents were printed") }
    reader.isWanted = { !Interrupt.isRequested }
    reader.isCancelled = { Interrupt.isRequested }
    reader.around = { slice in
      if Interrupt.isRequested { throw stop() }
      try slice()
    }
    // It would keep itself alive.
    defer { reader.around = { try $0() } }
    repeat {
      do { try reader.read() } catch  where Interrupt.isRequested { throw stop() }
      for document in reader.text.withBytes({ String(decoding: $0, as: UTF8.self) }).split(separator: ",\r\n")
      {
        try output.line(document.drop { $0 == "\r\n" })
      }
      if Interrupt.isRequested { throw stop() }
    } while !reader.isDone
  }

  /// The request, with what the options say.
  private func request() throws -> MangoQuery {
    let text = text == "-" ? try StandardInput.text("the selector") : text
    func list(_ option: String) -> OrderedJSON {
      .array(option.split(separator: ",").map { .scalar(.string(String($0))) })
    }
    // It says where the fault is.
    _ = try JSONInput.object(Array(text.utf8), "the selector")
    do {
      var body = try OrderedJSON(parsing: Array(text.utf8))
      if body["selector"]?.members == nil { body = ["selector": body] }
      var members = body.members ?? []
      func set(_ name: String, _ value: OrderedJSON?) {
        guard let value else { return }
        members.removeAll { $0.name.utf8.elementsEqual(name.utf8) }
        members.append(.init(name: name, value: value))
      }
      let isLimited = body["limit"] != nil
      set("limit", limit.map { .scalar(.int(Int64($0))) } ?? (isLimited ? nil : .scalar(.int(.max))))
      set("skip", skip.map { .scalar(.int(Int64($0))) })
      set("fields", fields.map { list($0) })
      set(
        "sort",
        sort.map { names in
          .array(
            names.split(separator: ",").map { name in
              .object([.init(name: String(name), value: isDescending ? "desc" : "asc")])
            })
        })
      return try MangoQuery(.object(members))
    } catch let error as CouchDBError { throw UsageError("\(error.reason) (\(error.error))") }
  }
}
