import Datasets
import Fleece

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

    func json() throws -> [UInt8] {
      var object = JSONObject()
      object["description"] = description.map(JSONValue.string)
      object["content"] = content.map(JSONValue.string)
      if !reviews.isEmpty { object["reviews"] = .array(reviews.map(JSONValue.string)) }
      return Array(try JSONValue.object(object).canonicalJSON().utf8)
    }
  }

  static let columns = ["description", "content", "reviews"]

  let all: [Document]
  let queries: [FullTextCase: [FullTextCase.Asked]]

  init(_ dataset: LoadedDataset) throws {
    var documents: [Document] = []
    for number in 0..<dataset.count {
      let parsed = try JSONValue(json: dataset.json(number))
      let document = Document(
        id: dataset.idText(number), description: parsed["description"].string,
        content: parsed["content"].string,
        reviews: parsed["reviews"].array?.compactMap { $0["content"].string } ?? [])
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
