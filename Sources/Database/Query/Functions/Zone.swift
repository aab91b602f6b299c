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
      guard let zone = zone as? NamedZone, zone.rules != nil else { return nil }
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

/// The rules of a time zone: the system's, or where that doesn't have the zone, ICU's. They belong to one evaluation context.
final class NamedZone: Pattern {
  fileprivate enum Rules {
    case system(ZoneFile)
    case icu(OpaquePointer)
  }

  /// Nil for an unknown name.
  fileprivate let rules: Rules?

  override init(source: TextSlice) {
    let name = source.string
    if let file = ZoneFile(named: name) {
      rules = .system(file)
    } else {
      let units = Array(name.utf16)
      rules = icu_zone_open(units, Int32(units.count)).map { .icu($0) }
    }
    super.init(source: source)
  }

  deinit { if case .icu(let zone) = rules { icu_zone_close(zone) } }

  fileprivate func offset(at milliseconds: Int64) -> Int {
    switch rules {
    case .system(let file):
      Int(Int64(file.offset(at: milliseconds.flooredDivision(by: 1_000))).flooredDivision(by: 60))
    case .icu(let zone): Int(Int64(icu_zone_offset(zone, Double(milliseconds))).flooredDivision(by: 60_000))
    case nil: 0
    }
  }
}
