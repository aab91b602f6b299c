import Foundation
import TestSupport

@testable import Query

/// The system's time zones.
@Suite struct ZoneFileTests {
  /// Zones whose rules haven't changed for many years, so that Foundation's own copy of them has to agree.
  private static let settled = [
    "Europe/Paris", "Europe/London", "Europe/Dublin", "America/New_York", "America/St_Johns", "Asia/Kolkata",
    "Asia/Kathmandu", "Australia/Lord_Howe", "Australia/Adelaide", "Pacific/Auckland", "Pacific/Chatham",
    "Africa/Johannesburg", "Pacific/Kiritimati", "Etc/GMT+5", "UTC",
  ]
  private static let hasZones = ZoneFile(named: "Europe/Paris") != nil

  @Test("have the offsets of another copy of the database", .enabled(if: hasZones), arguments: settled)
  func offsets(_ name: String) throws {
    let zone = try #require(ZoneFile(named: name))
    let other = try #require(TimeZone(identifier: name))
    // From 1972, when the last of them stopped to count seconds, to 2060, by rule.
    for seconds in stride(from: Int64(63_072_000), to: 2_840_140_800, by: 40_117) {
      let expected = other.secondsFromGMT(for: Date(timeIntervalSince1970: Double(seconds)))
      guard zone.offset(at: seconds) != expected else { continue }
      expect(zone.offset(at: seconds), equals: expected, "\(name) at \(seconds)")
      break
    }
  }

  /// Rules as POSIX writes them, and what holds a second before a moment and from it on.
  @Test(arguments: [
    ("EST5EDT,M3.2.0,M11.1.0", 1_930_806_000, -18_000, -14_400),  // 9 March 2031, 02:00 EST
    ("EST5EDT,M3.2.0,M11.1.0", 1_951_365_600, -14_400, -18_000),  // 2 November 2031, 02:00 EDT
    ("NZST-12NZDT,M9.5.0,M4.1.0/3", 1_948_284_000, 43_200, 46_800),  // 28 September 2031, 02:00 NZST
    // 30 March 2031, 01:00 GMT. The standard time is that of summer.
    ("IST-1GMT0,M10.5.0,M3.5.0/1", 1_932_598_800, 0, 3_600),
    ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1_932_598_800, -7_200, -3_600),  // 29 March 2031, 23:00
    ("WART4WARST,J1/0,J365/25", 1_924_992_000, -10_800, -10_800),  // summer in all of the year
    ("AAA3BBB,59/0,J61/0", 1_961_636_400, -10_800, -7_200),  // 29 February 2032
    ("AAA3BBB,J60/0,J70/0", 1_961_722_800, -10_800, -7_200),  // 1 March, as in any year
    ("AAA3BBB,J60/0,J70/0", 1_930_100_400, -10_800, -7_200),
    ("<+0545>-5:45", 0, 20_700, 20_700),
  ])
  func rules(_ text: String, _ moment: Int64, _ before: Int, _ after: Int) throws {
    let rule = try #require(ZoneRule(Array(text.utf8)[...]))
    expect(rule.offset(at: moment - 1), equals: before, "before")
    expect(rule.offset(at: moment), equals: after, "from then on")
  }

  @Test(arguments: [
    "", "E5", "EST", "EST5EDT", "EST5EDT,M3.2.0", "EST5EDT,M13.2.0,M11.1.0", "EST5EDT,M3.6.0,M11.1.0",
    "EST5EDT,M3.2.7,M11.1.0", "EST5EDT,J0,J1", "EST5EDT,M3.2.0,M11.1.0x", "EST25", "<+05-5",
    "EST5EDT,M3.2.0/168,M11.1.0",
    "EST5:60", "EST99999999999999999999",
  ])
  func brokenRules(_ text: String) { expect(ZoneRule(Array(text.utf8)[...]) == nil) }

  @Test(
    "names that aren't zones give nothing",
    arguments: [
      "", "Europe", "Europe/", "/Europe/Paris", "Europe/../Europe/Paris", "../zoneinfo/UTC",
      "right/Europe/Paris",
      "posix/Europe/Paris", "zone.tab", "leapseconds", "Europe//Paris", "Europe/Nowhere", "Europe/Par\u{0}is",
    ])
  func names(_ name: String) { expect(ZoneFile(named: name) == nil) }

  @Test("damaged files give nothing or some offset, and never end the process", .enabled(if: hasZones))
  func damage() throws {
    let directory = ProcessInfo.processInfo.environment["TZDIR"] ?? "/usr/share/zoneinfo"
    let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: directory + "/Europe/Paris")))
    expect(ZoneFile(bytes) != nil)
    for count in 0..<bytes.count { expect(ZoneFile(Array(bytes[..<count])) == nil, "\(count) bytes") }
    var random = SeededGenerator(seed: testSeed)
    for _ in 0..<2_000 {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      guard let zone = ZoneFile(changed) else { continue }
      for seconds in [Int64.min / 1_000, -1, 0, 4_000_000_000, Int64.max / 1_000_000] {
        expect(abs(zone.offset(at: seconds)) < 26 * 3_600)
      }
    }
  }
}
