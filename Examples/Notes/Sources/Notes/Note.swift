// What is stored, and what queries return.

import Foundation
import Touchstone

/// A note. The database sets `id` and `revision`. The other properties are those of the document.
struct Note: DocumentModel, Sendable {
  var id: String?
  var revision = ModelRevision()
  var text: String
  var tags: [String] = []
  /// When the text was last changed. Lists begin with the latest note.
  var edited = Date()
  var photo: Blob?
}

/// A row of a query. Each property takes the column of its name.
struct NoteRow: Decodable, Hashable, Sendable, CustomStringConvertible {
  static let columns = "META().id AS id, text, tags, edited, photo"

  let id: String
  let text: String
  let tags: [String]
  let edited: Date
  let photo: Blob?

  var description: String {
    let tags = tags.map { " #\($0)" }.joined()
    let photo = photo.map { " [photo of \($0.length) bytes]" } ?? ""
    return "\(id)  \(edited.formatted(.iso8601))  \(text)\(tags)\(photo)"
  }
}
