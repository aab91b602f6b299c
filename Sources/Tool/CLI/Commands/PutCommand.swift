import FoundationEssentials
import Touchstone

/// `touchstone put`: saves a document.
struct PutCommand: Subcommand {
  private static let id = Positional("ID", "The document's ID")
  private static let body = Positional("JSON", "The body, a JSON object; - for standard input")
  static let revision = Option(
    "rev", "REV", "The revision that the change is based on; status 1 if it isn't the current one")
  private static let attachment = Option(
    "attachment", "NAME=FILE",
    "Adds a file as an attachment; NAME=FILE:TYPE sets its content type; may be repeated",
    parse: AttachedFile.init)

  static let usage = Usage(
    "put", "Saves a document and prints its new revision",
    positionals: [DatabaseArguments.database, id, body],
    options: [revision, attachment, DatabaseArguments.json, Keys.file],
    examples: [
      "touchstone put travel airline_1 '{\"type\":\"airline\",\"name\":\"Paper Planes\"}'",
      "touchstone put travel airline_1 '{\"type\":\"airline\"}' --attachment logo=logo.png:image/png",
    ],
    notes: "Without --rev, the last write wins.")

  private let database: DatabaseArguments
  private let id: String
  private let text: String
  private let revisionID: RevisionID?
  private let attachments: [AttachedFile]
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    id = try arguments.required(Self.id)
    text = try arguments.required(Self.body)
    revisionID = try arguments.value(Self.revision).map(parseRevisionID)
    attachments = try arguments.allValues(Self.attachment)
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    let json = text == "-" ? try StandardInput.bytes() : Array(text.utf8)
    let database = try database.open()
    let saved = try database.save(
      id, try body(json, in: database), basedOn: revisionID,
      onConflict: revisionID == nil ? .lastWriteWins : .fail)
    try printSaved(saved, id, asJSON: asJSON, to: output)
    try database.close()
  }

  /// The document's body with the attachments. Stores their bytes.
  private func body(_ json: [UInt8], in database: Database) throws -> DocumentBody {
    guard !attachments.isEmpty else { return .json(json) }
    var document = MutableDocument(id: id, try JSONInput.object(json, "the body"))
    for attached in attachments {
      let (path, contentType) = attached.file
      do {
        let blob = try database.makeBlob(contentsOfFile: path, contentType: contentType)
        document.setAttachment(attached.name, blob)
      } catch let error as StorageError where error.path == path {
        throw UsageError("--attachment: \(error)")
      }
    }
    return .value(document.body)
  }
}

/// The value of `--attachment`: `NAME=FILE` or `NAME=FILE:TYPE`.
private struct AttachedFile: Sendable {
  let name: String
  /// The path and the content type as given.
  private let text: String

  init(_ value: String) throws {
    guard let sign = value.firstIndex(of: "="), sign > value.startIndex,
      value.index(after: sign) < value.endIndex
    else { throw UsageError("'\(value)' doesn't have the form NAME=FILE") }
    name = String(value[..<sign])
    text = String(value[value.index(after: sign)...])
  }

  /// The text after the last colon is a content type if it looks like one and no file has the whole text as
  /// its name.
  var file: (path: String, contentType: String?) {
    guard let colon = text.lastIndex(of: ":"), colon > text.startIndex else { return (text, nil) }
    let type = text[text.index(after: colon)...]
    let parts = type.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty,
      !FileManager.default.fileExists(atPath: text)
    else { return (text, nil) }
    return (String(text[..<colon]), String(type))
  }
}

/// Prints the result of a write.
func printSaved(_ saved: SavedRevision, _ id: String, asJSON: Bool, to output: StandardOutput) throws {
  guard asJSON else { return try output.line(saved.revisionID.description) }
  let object: JSONObjectText = ["id": id, "rev": saved.revisionID.description, "sequence": saved.sequence]
  try output.line(object.jsonText)
}
