/// The part of a text that a snippet shows.
struct SnippetWindow {
  /// The number of distinct query terms in the window.
  let distinct: Int
  /// The byte ranges of the hits in the window, each word once.
  let hits: [(start: Int, end: Int)]
  private let text: UnsafeRawBufferPointer
  private let start: Int
  private let end: Int

  /// Finds the best window of a text. Returns nil if the text has no words.
  ///
  /// - Parameter hits: the hits in the text, ordered by their starts.
  init?(_ text: UnsafeRawBufferPointer, _ hits: [MatchHit], _ limit: Int, _ analyzer: TextAnalyzer) {
    self.text = text
    var words: [(start: Int, end: Int)] = []
    analyzer.scanner.forEachWord(in: text) { start, end, _ in words.append((start, end)) }
    guard !words.isEmpty else { return nil }

    // The number of each hit's word. Both lists are in the order of the text.
    var wordOfHit: [Int] = []
    var word = 0
    for hit in hits {
      while word + 1 < words.count, words[word].start < hit.start { word += 1 }
      wordOfHit.append(word)
    }

    // Try the windows that begin at a hit. A window has the hits `first..<last`.
    var best = (distinct: 0, first: 0, last: 0)
    var counts: [Int: Int] = [:]
    var last = 0
    for first in hits.indices {
      while last < hits.count, wordOfHit[last] < wordOfHit[first] + limit {
        counts[hits[last].term, default: 0] += 1
        last += 1
      }
      if (best.distinct, best.last - best.first) < (counts.count, last - first) {
        best = (counts.count, first, last)
      }
      let term = hits[first].term
      counts[term] = counts[term] == 1 ? nil : counts[term].map { $0 - 1 }
    }
    distinct = best.distinct
    var shown: [(start: Int, end: Int)] = []
    for hit in hits[best.first..<best.last] where shown.last?.start != hit.start {
      shown.append((hit.start, hit.start + hit.length))
    }
    self.hits = shown

    // Center the hits in the window as far as the text allows.
    var firstWord = 0
    if best.first < best.last {
      let used = wordOfHit[best.last - 1] - wordOfHit[best.first] + 1
      firstWord = wordOfHit[best.first] - (limit - used) / 2
      firstWord = max(0, min(firstWord, words.count - limit))
    }
    let lastWord = min(words.count, firstWord + limit) - 1
    start = firstWord == 0 ? 0 : words[firstWord].start
    end = lastWord == words.count - 1 ? text.count : words[lastWord].end
  }

  /// Returns the text of the window with its hits marked.
  func marked(before: String, after: String, ellipsis: String) -> String {
    var result = start > 0 ? ellipsis : ""
    var shown = start
    for (index, hit) in hits.enumerated() {
      result += string(shown, hit.start)
      if index == 0 || hits[index - 1].end != hit.start { result += before }
      result += string(hit.start, hit.end)
      if index + 1 == hits.count || hits[index + 1].start != hit.end { result += after }
      shown = hit.end
    }
    result += string(shown, end)
    return end < text.count ? result + ellipsis : result
  }

  private func string(_ from: Int, _ to: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(rebasing: text[from..<to]), as: UTF8.self)
  }
}
