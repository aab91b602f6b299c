import CICU

/// Conversions of text to and from ICU's UTF-16.
enum UTF16Text {
  /// The UTF-16 units of a text, in the arena.
  static func units(_ text: TextSlice, _ arena: EvaluationArena) -> UnsafeBufferPointer<UInt16> {
    let units = arena.allocate(text.count + 1, of: UInt16.self)
    let count = text.start.withMemoryRebound(to: CChar.self, capacity: text.count) {
      icu_to_utf16($0, Int32(text.count), units, Int32(text.count + 1))
    }
    return UnsafeBufferPointer(start: units, count: max(0, Int(count)))
  }

  /// The UTF-8 text of UTF-16 units, in the arena.
  static func text(_ units: UnsafeBufferPointer<UInt16>, _ arena: EvaluationArena) -> TextSlice {
    let capacity = units.count * 3 + 1
    let bytes = arena.allocate(capacity, of: CChar.self)
    let count = icu_to_utf8(units.baseAddress, Int32(units.count), bytes, Int32(capacity))
    let start = UnsafeRawPointer(bytes).assumingMemoryBound(to: UInt8.self)
    return TextSlice(start: start, count: max(0, Int(count)))
  }

  /// Applies a mapping function of ICU to a text. The function is called again with more room when it needs
  /// it.
  static func mapping(
    _ text: TextSlice, _ arena: EvaluationArena,
    _ map: (UnsafePointer<UInt16>?, Int32, UnsafeMutablePointer<UInt16>, Int32) -> Int32
  ) -> TextSlice {
    let source = units(text, arena)
    var capacity = source.count * 2 + 16
    for _ in 0..<2 {
      let target = arena.allocate(capacity, of: UInt16.self)
      let count = Int(map(source.baseAddress, Int32(source.count), target, Int32(capacity)))
      if count <= capacity {
        return self.text(UnsafeBufferPointer(start: target, count: max(0, count)), arena)
      }
      capacity = count
    }
    return text
  }
}
