import TestSupport
import Testing

@testable import Views

@Suite struct StoredRowTests {
  @Test func collationsHaveStableNumbers() {
    expect(ViewCollation.allCases.map(\.rawValue), equals: [1, 2, 3, 4])
  }
}
