import CICU
import Fleece

/// A time zone that a call names.
enum Zone {
  case local
  /// Minutes east of UTC.
  case fixed(Int)
  case named(NamedZone)

  /// The zone of an argument: minutes east of UTC, less than a day in either direction, or an IANA name such as
  /// `Europe/Paris`, which is case-sensitive. Nil for other values.
  init?(_ value: QueryValue, _ context: EvaluationContext, _ site: CallSite) {
    if case .string(let name) = value {
      let zone = context.pattern(site.pattern, for: name) { NamedZone(source: $0) }
      guard let zone = zone as? NamedZone, zone.icu != nil else { return nil }
      self = .named(zone)
      return
    }
    guard let minutes = value.integer, minutes > -1440, minutes < 1440 else { return nil }
    self = .fixed(Int(minutes))
  }

  /// The minutes east of UTC at a time in milliseconds since 1970.
  func offset(at milliseconds: Int64) -> Int {
    switch self {
    case .local: DateTime.localOffset(at: milliseconds)
    case .fixed(let minutes): minutes
    case .named(let zone): zone.offset(at: milliseconds)
    }
  }
}

/// The rules of a time zone. They belong to one evaluation context.
final class NamedZone: Pattern {
  /// Nil for an unknown name.
  fileprivate let icu: OpaquePointer?

  override init(source: TextSlice) {
    let units = Array(source.string.utf16)
    icu = icu_zone_open(units, Int32(units.count))
    super.init(source: source)
  }

  deinit { if let icu { icu_zone_close(icu) } }

  fileprivate func offset(at milliseconds: Int64) -> Int {
    Int(Int64(icu_zone_offset(icu, Double(milliseconds))).flooredDivision(by: 60_000))
  }
}
