/// The new lengths of the changed documents, by number.
final class DocumentLengths {
  private let first: UInt32
  private var dense: [UInt32] = []
  private var sparse: [UInt32: UInt32] = [:]

  init(_ documents: [InvertedIndexWriter.DocumentChange]) {
    first = documents.first?.number ?? 0
    let span = Int(documents.last?.number ?? 0) - Int(first) + 1
    if span <= documents.count * 8 + 1024 {
      dense = Array(repeating: 0, count: span)
      for document in documents { dense[Int(document.number - first)] = document.length ?? 0 }
    } else {
      for document in documents { sparse[document.number] = document.length ?? 0 }
    }
  }

  subscript(number: UInt32) -> UInt32 {
    if !dense.isEmpty {
      let index = Int(number) - Int(first)
      return dense.indices.contains(index) ? dense[index] : 0
    }
    return sparse[number] ?? 0
  }
}
