import Touchstone

/// `touchstone schema`: shows which properties documents have.
struct SchemaCommand: Subcommand {
  private static let property = Positional(
    "PROPERTY", "Only this property and what is below it: geo", count: .optional)
  private static let sample = Option(
    "sample", "N", in: 1...Int.max, "Reads N documents instead of \(SampledSchema.standardSample)")
  private static let all = Flag("all", "Reads all documents")

  static let usage = Usage(
    "schema", "Shows the properties of documents, how often they occur, and their types",
    positionals: [DatabaseArguments.database, property],
    options: [sample, all, DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone schema travel", "touchstone schema travel geo --all", "touchstone schema travel --json",
    ],
    notes: """
      A sample is spread evenly over the order of the last changes. [] stands for the items of an array. With
      --json, there is one object: documents, sampled, complete (false if there are more properties than are
      kept, 2,000) and properties, each with path, documents and types. If no document that was read has
      PROPERTY, the status is 1.
      """)

  private let database: DatabaseArguments
  private let property: String?
  private let sample: Int
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    property = arguments.optional(Self.property)
    let count = try arguments.value(Self.sample)
    guard count == nil || !arguments[Self.all] else {
      throw UsageError("--sample and --all can't be combined")
    }
    sample = arguments[Self.all] ? .max : count ?? SampledSchema.standardSample
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let database = try database.open()
    let schema = try SampledSchema(of: database, limit: sample) { Interrupt.isRequested }
    try database.close()
    do { try schema.print(below: property, asJSON: asJSON, to: output) } catch is Refusal
      where Interrupt.isRequested
    {
      // The rest might have the property.
    }
    if Interrupt.isRequested { throw Interrupted("\(schema.sampled) documents were read") }
  }
}
