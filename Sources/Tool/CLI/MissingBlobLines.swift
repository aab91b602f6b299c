import Touchstone

extension ConversionReport {
  /// If blobs are missing, says which, a line each on standard error, and throws a `Refusal` that begins with what was `done`:
  /// "the copy was made".
  func checkIsComplete(_ done: String) throws {
    guard !isComplete else { return }
    for blob in missingBlobs.prefix(Self.shownLines) { StandardError.line("\(blob)") }
    if missingBlobs.count > Self.shownLines {
      StandardError.line("… and more; touchstone check lists all")
    }
    let blobs = missingBlobCount == 1 ? "1 blob" : "\(TextTable.grouped(missingBlobCount)) blobs"
    let documents =
      documentCount == 1 ? "1 document names" : "\(TextTable.grouped(documentCount)) documents name"
    let verb = missingBlobCount == 1 ? "was" : "were"
    throw Refusal("\(done), but \(blobs) that \(documents) \(verb) missing before")
  }

  private static let shownLines = 20
}
