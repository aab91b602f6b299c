import TestSupport

@testable import Query

/// LIKE and CONTAINS against a matcher that is right at a glance, and on texts for which trying every place takes minutes.
@Suite struct LikeTests {
  /// Whether a text is of a pattern, character by character: all places of the pattern that the text so far may end at.
  private func matches(_ text: String, _ pattern: String) -> Bool {
    enum Token: Equatable { case run, one, scalar(String) }
    var tokens: [Token] = []
    var isEscaped = false
    for scalar in pattern.unicodeScalars {
      switch scalar {
      case "\\" where !isEscaped:
        isEscaped = true
        continue
      case "%" where !isEscaped: tokens.append(.run)
      case "_" where !isEscaped: tokens.append(.one)
      default: tokens.append(.scalar(String(scalar).lowercased()))
      }
      isEscaped = false
    }
    if isEscaped { tokens.append(.scalar("\\")) }
    func closure(_ places: Set<Int>) -> Set<Int> {
      var all = places
      for place in tokens.indices where all.contains(place) && tokens[place] == .run { all.insert(place + 1) }
      return all
    }
    var places = closure([0])
    for scalar in text.unicodeScalars {
      var next: Set<Int> = []
      for place in places where place < tokens.count {
        switch tokens[place] {
        case .run: next.insert(place)
        case .one: next.insert(place + 1)
        case .scalar(let wanted): if String(scalar).lowercased() == wanted { next.insert(place + 1) }
        }
      }
      places = closure(next)
    }
    return places.contains(tokens.count)
  }

  @Test("LIKE is what trying every place finds")
  func random() throws {
    var random = SeededGenerator(seed: testSeed)
    let harness = try EvaluationHarness()
    var matched = 0
    for round in 0..<(isLong ? 100_000 : 6_000) {
      let letters = [["a", "b"], ["a", "B", "é", "Ж"], ["a", "😀", "\u{301}", "z"]][round % 3]
      let isLongText = round % 40 == 0
      func some(_ count: Int, _ alphabet: [String]) -> String {
        (0..<count).map { _ in alphabet.randomElement(using: &random) ?? "" }.joined()
      }
      var text = some(Int.random(in: 0...(isLongText ? 600 : 12), using: &random), letters)
      var pattern: String
      if Bool.random(using: &random) {
        pattern = some(Int.random(in: 0...8, using: &random), letters + ["%", "%", "_", "\\", "\\%"])
      } else {
        // One that the text is likely to be of: parts of it are replaced.
        pattern = ""
        for scalar in text.unicodeScalars {
          switch Int.random(in: 0..<(isLongText ? 200 : 6), using: &random) {
          case 0: pattern += "%"
          case 1: pattern += "_"
          default: pattern.unicodeScalars.append(scalar)
          }
        }
        if isLongText { pattern = "%" + pattern.dropFirst(200) }
        if Bool.random(using: &random) { text += some(3, letters) }
      }
      let wanted = matches(text, pattern)
      matched += wanted ? 1 : 0
      let found = try harness.evaluate("$t LIKE $p", parameters: ["t": .string(text), "p": .string(pattern)])
      expect(found, equals: (wanted ? "true" : "false"), "'\(text)' LIKE '\(pattern)'")
      // Without case: the same on a text in lower case; and without accents.
      let lower = text.lowercased()
      let exact = try harness.evaluate(
        "($t LIKE $p) COLLATE UNICODE", parameters: ["t": .string(lower), "p": .string(pattern.lowercased())])
      expect(
        exact, equals: (matches(lower, pattern.lowercased()) ? "true" : "false"),
        "'\(lower)' LIKE '\(pattern)'")
    }
    expect(matched > 500)
  }

  @Test(arguments: [
    ("'Ångström' LIKE 'ångstRÖM'", "true"),
    ("('Ångström' LIKE 'angstrom') COLLATE (UNICODE NOCASE NODIAC)", "true"),
    ("('Ångström' LIKE '%GSTR_m') COLLATE (UNICODE NOCASE NODIAC)", "true"),
    ("('a\u{301}b' LIKE 'ab') COLLATE (UNICODE NOCASE NODIAC)", "true"), ("'\u{212A}' LIKE 'k'", "true"),
    ("'k' LIKE '\u{212A}'", "true"), ("'Ⱥx' LIKE 'ⱥX'", "true"), ("'ß' LIKE 'ss'", "false"),
    ("'a%b' LIKE 'a\\%b'", "true"), ("'axb' LIKE 'a\\%b'", "false"), ("'a\\' LIKE 'a\\'", "true"),
    ("'a\\' LIKE 'a\\\\'", "true"), ("'' LIKE ''", "true"), ("'' LIKE '%'", "true"), ("'' LIKE '_'", "false"),
    ("'😀' LIKE '_'", "true"), ("'ab' LIKE 'a%b%ab'", "false"), ("'aba' LIKE 'ab%ba'", "false"),
    ("('Straße' LIKE 'straße') COLLATE UNICODE", "false"),
    ("CONTAINS('Ångström', 'GSTRÖ') COLLATE (UNICODE NOCASE)", "true"),
    ("CONTAINS('Ångström', 'stro') COLLATE (UNICODE NODIAC)", "true"),
    ("CONTAINS('Ångström', 'stro')", "false"),
    ("CONTAINS('abc', '') COLLATE UNICODE", "true"), ("CONTAINS('', 'a') COLLATE (UNICODE NOCASE)", "false"),
  ]) func examples(_ text: String, _ expected: String) throws {
    try expect(EvaluationHarness().evaluate(text), equals: expected, "\(text)")
  }

  /// Each would take a minute and more if the pattern were tried at each place of the text.
  @Test("a long pattern isn't tried at every place of a long text")
  func long() throws {
    let harness = try EvaluationHarness()
    let text = String(repeating: "aab", count: 300_000)
    let part = String(repeating: "aab", count: 20_000)
    // As many different characters as a table for them would be too large for.
    let wide = String(String.UnicodeScalarView((0x4E00..<0x9000).compactMap { Unicode.Scalar($0) }))
    let begin = Self.processorSeconds
    for (call, parameters, expected) in [
      ("$t LIKE $p", ["t": text, "p": "%" + part + "c%"], "false"),
      ("$t LIKE $p", ["t": text, "p": "%" + part + "%"], "true"),
      ("$t LIKE $p", ["t": text + "é", "p": "%" + part + "C%"], "false"),
      ("$t LIKE $p", ["t": text, "p": "%" + part.replacing("b", with: "_") + "c%"], "false"),
      ("$t LIKE $p", ["t": text + "é", "p": "%" + part.replacing("b", with: "_") + "%é"], "true"),
      ("$t LIKE $p", ["t": text, "p": "%a" + String(repeating: "%a%b", count: 20_000) + "c%"], "false"),
      ("$t LIKE $p", ["t": wide + wide + "x", "p": "%" + wide + "_" + "%x"], "true"),
      ("$t LIKE $p", ["t": wide + wide, "p": "%_" + wide + "%x"], "false"),
      ("CONTAINS($t, $p)", ["t": text, "p": part + "c"], "false"),
      ("CONTAINS($t, $p)", ["t": text + "c", "p": part + "c"], "true"),
      ("CONTAINS($t, $p) COLLATE (UNICODE NOCASE)", ["t": text, "p": part.uppercased() + "C"], "false"),
      ("POSITION($t, $p)", ["t": text + "c", "p": part + "c"], "840000"),
      ("LENGTH(REPLACE($t, $p, ''))", ["t": text, "p": part + "c"], "900000"),
      ("ARRAY_LENGTH(SPLIT($t, $p))", ["t": text, "p": part], "16"),
    ] {
      let values = parameters.mapValues { JSONValue.string($0) }
      try expect(harness.evaluate(call, parameters: values), equals: expected, "\(call)")
    }
    // Some 40 comparisons a byte of text, where it would be 60,000.
    expect(Self.processorSeconds - begin < (isSanitized ? 300 : 30))
  }

  /// The processor time of this thread, which other processes don't make longer.
  private static var processorSeconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
