import Datasets
import Foundation

/// The texts of those documents of a data set that have text.
struct TextDocuments: Sendable {
  /// The texts of a document: the description of a hotel, the content of a landmark, the contents of reviews.
  struct Document: Sendable {
    var id: String
    var description: String?
    var content: String?
    var reviews: [String]

    /// One text per column.
    var texts: [String] { [description ?? "", content ?? "", reviews.joined(separator: " ")] }

    func json() throws -> Data {
      var object: [String: Any] = [:]
      if let description { object["description"] = description }
      if let content { object["content"] = content }
      if !reviews.isEmpty { object["reviews"] = reviews }
      return try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys])
    }
  }

  static let columns = ["description", "content", "reviews"]

  let all: [Document]
  let queries: [FullTextCase: [FullTextCase.Asked]]

  init(_ dataset: LoadedDataset) throws {
    var documents: [Document] = []
    for number in 0..<dataset.count {
      let parsed = try JSONSerialization.jsonObject(with: Data(dataset.json(number))) as? [String: Any]
      let reviews = (parsed?["reviews"] as? [[String: Any]] ?? []).compactMap { $0["content"] as? String }
      let document = Document(
        id: dataset.idText(number),
        description: parsed?["description"] as? String,
        content: parsed?["content"] as? String, reviews: reviews)
      if document.texts.contains(where: { !$0.isEmpty }) { documents.append(document) }
    }
    all = documents
    queries = FullTextCase.choose(documents)
  }

  /// Returns some documents, evenly spread, each with a few more words.
  func changed(_ count: Int, round: Int) -> [Document] {
    (0..<min(count, all.count)).map { number in
      var document = all[number * all.count / min(count, all.count)]
      document.reviews.append("Edited in round \(round), number \(number): remarkable.")
      return document
    }
  }
}
