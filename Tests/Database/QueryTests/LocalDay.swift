import Foundation

/// The day of 1970-01-01T00:00:00Z where the tests run.
let localDay: String = {
  let format = DateFormatter()
  format.locale = Locale(identifier: "en_US_POSIX")
  format.dateFormat = "yyyy-MM-dd"
  return format.string(from: Date(timeIntervalSince1970: 0))
}()
