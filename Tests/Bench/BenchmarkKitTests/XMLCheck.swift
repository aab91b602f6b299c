import Foundation

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// Whether a text is XML.
enum XMLCheck {
  static func isWellFormed(_ text: String) -> Bool { XMLParser(data: Data(text.utf8)).parse() }
}
